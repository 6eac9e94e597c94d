-- title: Tokens
-- question: How evenly do tokens come: time to first token, time per token of requests, single gaps between tokens, and jitter?
-- example: tokens logs/
-- example: tokens --by model,gpu --percentiles 50,99 logs/
-- sampled: records
-- param: by dimensions | what to group by: as the record of the request says, else as the step does
-- param: percentiles percentiles 50,95,99 | which percentiles to show
-- param: include_failed flag false | measure failed requests too
-- pivot: p95_ms
-- column: unit | token: one step is one token; chunk: a step may be several, as the log says, or as most steps of the request go on by more than one index
-- column: metric | ttft: first token - arrival; tpot: first to last step / tokens after the first; itl: one gap between two tokens; icl: one gap between two chunks, which are no tokens; jitter: mean change from one gap of a request to its next
-- column: weighting | what counts once: request (of several tokens, all its gaps make one value), token or chunk (each gap is a value, so that long answers weigh more)
-- column: requests requests | requests with steps, counted once for each log and role that has them; in every row of the unit
-- column: failed requests | of them failed: measured only with --include-failed
-- column: steps steps | steps of these requests; of one logged twice the first
-- column: measured | values: requests or gaps, as the weighting says
-- column: unknown | the same without a value, though they should have one; a request of one token has neither TPOT nor gaps, and is none of these
-- column: mean_ms ms | mean of the measured
-- column: p*_ms ms | percentile of the measured
-- column: max_ms ms | the largest of the measured
{% set of_request = ["failed", "ttft_ms", "output_tokens", "stream"] %}
{% set of_step = [] %}
{% set measured = "true" if include_failed else "NOT coalesce(failed, false)" %}
WITH
{% include "parts/gaps.sql" %}
timed AS (
  SELECT *, abs(gap - lag(gap) OVER stream) AS change,
    CASE WHEN place = 1 THEN coalesce(ttft_ms, CASE WHEN stream IS NOT FALSE AND at >= arrived THEN (at - arrived) / 1e6 END) END AS ttft
  FROM steps
  WINDOW stream AS (PARTITION BY sequence ORDER BY token_index, timestamp, source_offset)
)
SELECT {{ keys }}unit, grouping(sequence) AS is_whole,
  count(*) AS steps, bool_or(failed) AS failed,
  count(*) FILTER (WHERE {{ measured }} AND place > 1) AS gaps, count(gap) FILTER (WHERE {{ measured }}) AS gap_measured,
  exact_mean(gap) FILTER (WHERE {{ measured }}) AS gap_mean, percentiles(gap, $percentiles) FILTER (WHERE {{ measured }}) AS gap_percentiles,
  max(gap) FILTER (WHERE {{ measured }}) AS gap_max,
  max(ttft) AS ttft, exact_mean(change) AS jitter,
  CASE WHEN NOT bool_or(is_declared) THEN exact_sum(any_gap) / nullif(sum(covers) FILTER (WHERE any_gap IS NOT NULL), 0)
    WHEN count(any_gap) = count(*) - 1 THEN exact_sum(any_gap) / nullif(greatest(max(output_tokens), 1) - 1, 0) END AS tpot
FROM timed
GROUP BY GROUPING SETS (({{ keys }}unit), ({{ keys }}unit, sequence))
-- step: groups
SELECT 'chunks' AS code, 'requests log chunks, which may be several tokens: the gaps between these are icl, not itl' AS text, count(*) AS count
FROM groups
WHERE is_whole = 0 AND unit = 'chunk'
HAVING count(*) > 0
-- step: notes
WITH each AS (
  SELECT {{ keys }}unit, count(*) AS requests, count(*) FILTER (WHERE failed) AS failed, CAST(sum(steps) AS BIGINT) AS steps,
    count(*) FILTER (WHERE {{ measured }}) AS ttft_wanted, count(*) FILTER (WHERE {{ measured }} AND gaps > 0) AS tpot_wanted,
{% for metric in ["ttft", "tpot", "jitter"] %}
    count({{ metric }}) FILTER (WHERE {{ measured }}) AS {{ metric }}_measured, exact_mean({{ metric }}) FILTER (WHERE {{ measured }}) AS {{ metric }}_mean,
    percentiles({{ metric }}, $percentiles) FILTER (WHERE {{ measured }}) AS {{ metric }}_percentiles, max({{ metric }}) FILTER (WHERE {{ measured }}) AS {{ metric }}_max,
{% endfor %}
    count(*) FILTER (WHERE {{ measured }} AND gaps > 1) AS jitter_wanted
  FROM groups
  WHERE is_whole = 0
  GROUP BY {{ keys }}unit
)
SELECT each.*, gaps AS gap_wanted, gap_measured, gap_mean, gap_percentiles, gap_max
FROM each
JOIN groups ON is_whole = 1 AND each.unit = groups.unit AND {{ same_keys("each", "groups") }}
-- step: metrics
SELECT {{ labelled }}unit, metric, weighting, requests, failed, steps, measured, greatest(wanted - measured, 0) AS unknown, mean_ms,
{% for percentile in percentiles %}
  percentiles[{{ loop.index }}] AS {{ percentile.name }}_ms,
{% endfor %}
  max_ms
FROM (
{% for metric in ["ttft", "tpot", "gap", "jitter"] %}
  SELECT {{ keys }}unit, requests, failed, steps, {{ loop.index }} AS position,
{% if metric == "gap" %}
    CASE unit WHEN 'chunk' THEN 'icl' ELSE 'itl' END AS metric, unit AS weighting,
{% else %}
    '{{ metric }}' AS metric, 'request' AS weighting,
{% endif %}
    {{ metric }}_measured AS measured, {{ metric }}_wanted AS wanted, {{ metric }}_mean AS mean_ms, {{ metric }}_percentiles AS percentiles, {{ metric }}_max AS max_ms
  FROM metrics
{{ "" if loop.last else "  UNION ALL" }}
{% endfor %}
)
ORDER BY {{ order }}unit DESC, position
{{ limit }}
