-- title: Baseline check
-- question: Is anything slower than in the good period, for the same model and input length, and again and again?
-- example: baseline check --against good.json --since 7d logs/
-- example: baseline check --against good.json --every 1h --fail-on never logs/
-- param: against table ! | what `baseline save` wrote, as json, jsonl or parquet
-- param: fail_on choice error never | exit with 3 where a baseline is breached
-- param: every span 1d | windows that are compared with the baseline, as long as its own
-- param: percentiles percentiles 50,95 | which percentiles to check
-- param: tolerance number 0.1 0..10 | how far above the baseline, and above every window of the good period, is no deviation
-- param: windows integer 2 1..1000 | in fewer windows a deviation is not confirmed: one run with a tight interval is no proof, recurrence is
-- param: share number 0.5 0..1 | nor in a smaller part of the windows
-- param: min_count integer 30 1..1000000000 | a window with fewer measured requests does not count
-- column: severity | error: breached; info: all else
-- column: status | breached: so many windows deviate, or are above the limit and do so all together; unconfirmed: above the limit beyond chance, in too few windows; ok; too few windows: fewer than --windows; no baseline: of no version of the model at this length, with windows of this length or this percentile, or with fewer than 10 requests above the percentile
-- column: model | the model that answered
-- column: version | its version
-- column: input_bucket | input tokens, lower edge included
-- column: metric | ttft, tpot or total, of requests that did not fail
-- column: percentile | of the requests of a window
-- column: judged windows | windows that have enough measured requests
-- column: deviating windows | of them those in which more requests are above the limit than may be above the percentile: by 3 standard deviations, of the window's count and of the baseline's own
-- column: above_limit windows | judged windows whose percentile is above the limit
-- column: limit_ms ms | baseline x (1 + tolerance), or the highest window of the good period, if that is more
-- column: change ratio | median of the windows' percentiles / baseline - 1
-- column: value_ms ms | median of the windows' percentiles
-- column: baseline_ms ms | the same of the good period
-- column: baseline_version | the version whose baseline it is: its own, else the one that was measured most
-- column: first_deviating | the first window that deviates
-- column: last_deviating | the last window that deviates
{% set metrics = ["ttft", "tpot", "total"] %}
{% set same = "(cells.model_name IS NOT DISTINCT FROM read.model_name) AND (cells.model_version IS NOT DISTINCT FROM read.model_version) AND (cells.cell IS NOT DISTINCT FROM read.cell)" %}
SELECT model_name, model_version, bucket(input_tokens, $input_edges) AS cell, count(*) AS requests
FROM {{ logs }}
WHERE timestamp IS NOT NULL
GROUP BY model_name, model_version, cell
-- step: present
WITH stored AS (
  SELECT CAST(model AS VARCHAR) AS model, CAST(version AS VARCHAR) AS version, CAST(input_bucket AS VARCHAR) AS input_bucket,
    CAST(metric AS VARCHAR) AS metric, CAST(percentile AS VARCHAR) AS percentile,
    CAST(measured AS BIGINT) AS measured, CAST(value_ms AS DOUBLE) AS value_ms, CAST(high_ms AS DOUBLE) AS high_ms
  FROM against
  WHERE CAST(window_ms AS BIGINT) = $every
),
versions AS (
  SELECT model, version, input_bucket, sum(measured) AS measured FROM stored GROUP BY model, version, input_bucket
),
chosen AS (
  SELECT model_name, model_version, cell, versions.model, versions.version, versions.input_bucket,
    row_number() OVER (PARTITION BY model_name, model_version, cell
      ORDER BY versions.version IS NOT DISTINCT FROM model_version DESC, measured DESC NULLS LAST, versions.version) AS place
  FROM present
  LEFT JOIN versions ON (versions.model IS NOT DISTINCT FROM present.model_name)
    AND (versions.input_bucket IS NOT DISTINCT FROM bucket_label(present.cell, $input_edges))
)
SELECT model_name, model_version, cell, max(chosen.version) AS baseline_version
{% for metric in metrics %}{% for percentile in percentiles %}
{% set is_it = "metric = '" ~ metric ~ "' AND percentile = '" ~ percentile.name ~ "'" %}
  , max(CASE WHEN {{ is_it }} THEN value_ms END) AS {{ metric }}_{{ loop.index }}_base
  , max(CASE WHEN {{ is_it }} THEN measured END) AS {{ metric }}_{{ loop.index }}_of
  , max(CASE WHEN {{ is_it }} AND measured * {{ 1 - percentile.fraction }} >= 10 THEN greatest(value_ms * (1 + $tolerance), high_ms) END) AS {{ metric }}_{{ loop.index }}_limit
{% endfor %}{% endfor %}
FROM chosen
LEFT JOIN stored ON (stored.model IS NOT DISTINCT FROM chosen.model) AND (stored.version IS NOT DISTINCT FROM chosen.version)
  AND (stored.input_bucket IS NOT DISTINCT FROM chosen.input_bucket)
WHERE place = 1
GROUP BY model_name, model_version, cell
-- step: cells
WITH read AS (
  SELECT model_name, model_version, bucket(input_tokens, $input_edges) AS cell,
    local_window(timestamp, $every, 0, $zone) AS window_start,
    CASE WHEN failed IS NOT TRUE THEN ttft_ms END AS ttft, CASE WHEN failed IS NOT TRUE THEN tpot_ms END AS tpot,
    CASE WHEN failed IS NOT TRUE THEN total_latency_ms END AS total
  FROM {{ logs }}
  WHERE timestamp IS NOT NULL
)
SELECT read.model_name, read.model_version, read.cell, window_start, baseline_version
{% for metric in metrics %}
  , count({{ metric }}) AS {{ metric }}_measured, percentiles({{ metric }}, $percentiles) AS {{ metric }}_found
{% for percentile in percentiles %}
  , {{ metric }}_{{ loop.index }}_base, {{ metric }}_{{ loop.index }}_of, {{ metric }}_{{ loop.index }}_limit, count(*) FILTER (WHERE {{ metric }} > {{ metric }}_{{ loop.index }}_limit) AS {{ metric }}_{{ loop.index }}_above
{% endfor %}{% endfor %}
FROM read
JOIN cells ON {{ same }}
GROUP BY read.model_name, read.model_version, read.cell, window_start, baseline_version
{% for metric in metrics %}{% for percentile in percentiles %}, {{ metric }}_{{ loop.index }}_base, {{ metric }}_{{ loop.index }}_of, {{ metric }}_{{ loop.index }}_limit{% endfor %}{% endfor %}

-- step: windows
WITH listed AS (
{% for metric in metrics %}{% set number = loop.index %}{% set is_last = loop.last %}{% for percentile in percentiles %}
  SELECT model_name, model_version, cell, window_start, baseline_version, {{ number }} AS metric_number, '{{ metric }}' AS metric,
    {{ loop.index }} AS percentile_number, '{{ percentile.name }}' AS percentile, CAST({{ percentile.fraction }} AS DOUBLE) AS fraction,
    {{ metric }}_measured AS measured, {{ metric }}_found[{{ loop.index }}] AS value,
    {{ metric }}_{{ loop.index }}_base AS base, {{ metric }}_{{ loop.index }}_of AS base_measured, {{ metric }}_{{ loop.index }}_limit AS highest, {{ metric }}_{{ loop.index }}_above AS above
  FROM windows
  {{ "" if is_last and loop.last else "UNION ALL" }}
{% endfor %}{% endfor %}
),
compared AS (
  SELECT *, coalesce(highest IS NOT NULL AND above > measured * (1 - fraction)
    + 3 * sqrt(measured * fraction * (1 - fraction) * (1 + CAST(measured AS DOUBLE) / base_measured)), false) AS deviates
  FROM listed
  WHERE measured >= $min_count
),
grouped AS (
  SELECT model_name, model_version, cell, metric_number, metric, percentile_number, percentile, baseline_version, base, highest,
    count(*) AS judged, count(*) FILTER (WHERE deviates) AS deviating, median(value) AS value_ms,
    coalesce(count(*) FILTER (WHERE value > highest), 0) AS above_limit,
-- windows that are each too small may be beyond chance together
    coalesce(sum(above) > sum(measured) * (1 - fraction)
      + 3 * sqrt(sum(measured) * fraction * (1 - fraction) * (1 + CAST(sum(measured) AS DOUBLE) / max(base_measured))), false) AS deviates_together,
    min(window_start) FILTER (WHERE deviates) AS first_deviating, max(window_start) FILTER (WHERE deviates) AS last_deviating
  FROM compared
  GROUP BY model_name, model_version, cell, metric_number, metric, percentile_number, percentile, fraction, baseline_version, base, highest
),
judged AS (
  SELECT *,
    CASE WHEN highest IS NULL THEN 'no baseline'
      WHEN deviating >= $windows AND deviating >= $share * judged THEN 'breached'
      WHEN above_limit >= $windows AND above_limit >= $share * judged AND deviates_together THEN 'breached'
      WHEN deviating > 0 OR deviates_together THEN 'unconfirmed'
      WHEN judged < $windows THEN 'too few windows'
      ELSE 'ok' END AS status
  FROM grouped
)
SELECT CASE status WHEN 'breached' THEN 'error' ELSE 'info' END AS severity, status,
  model_name AS model, model_version AS version, bucket_label(cell, $input_edges) AS input_bucket, metric, percentile,
  judged, deviating, above_limit, value_ms / base - 1 AS change, value_ms, base AS baseline_ms, highest AS limit_ms, baseline_version,
  first_deviating, last_deviating
FROM judged
ORDER BY {{ sort }}CASE status WHEN 'breached' THEN 1 WHEN 'unconfirmed' THEN 2 ELSE 3 END, change DESC NULLS LAST,
  model_name NULLS LAST, model_version NULLS LAST, cell NULLS LAST, metric_number, percentile_number
{{ limit }}
