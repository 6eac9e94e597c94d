-- title: Objectives
-- question: Does the service meet its objectives, and how fast does it use up its error budget?
-- example: slo --objective 99.9 --ttft 1000 logs/
-- example: slo --by business-line --total 30000 --tpot 50 --month 2025-06 logs/
-- example: slo --objective 99.9 --max-burn 14.4 --fail-on warning --since 24h logs/
-- param: by dimensions | what to group by: each group has the objective for itself
-- param: ttft integer 0..1000000000 | a good request has its first token within so many ms
-- param: tpot number 0..1000000000 | a good request takes at most so many ms for each output token after the first
-- param: total integer 0..1000000000 | a good request ends within so many ms
-- param: objective number 99 0..100 | percent of requests that must be good
-- param: window span 1h | length of the long windows; taken up to whole short ones
-- param: short span 5m | length of the short windows, counted from 1970; long ones slide by it
-- param: min_count integer 100 0..1000000000 | fewer good and bad requests say nothing: the group is info and has no windows; a long window has no burn rate
-- param: max_burn number 1 0..1000000 | burn rate from above which the last windows are a warning: 14.4 for 1h and 5m, 6 for 6h and 30m
-- param: fail_on choice never warning error | exit with 3 where a group is at least so severe
-- pivot: attainment
-- column: severity | error: attainment is below the objective; warning: the last long and the last short window both burn faster than --max-burn; else info
-- column: requests requests | all requests of the group
-- column: failed requests | of them failed
-- column: good requests | those that did not fail and are within each limit that is given; a value equal to the limit is within it
-- column: bad requests | those that failed, or are known to be beyond a limit, whatever else is unknown
-- column: unknown requests | neither: a value that has a limit is not known; an output of one token or none has no TPOT, and is within any
-- column: attainment ratio | good / (good + bad)
-- column: burn_rate | bad / (good + bad), as a multiple of what the objective allows: at 1 the budget lasts just as long as it is for; null where none is allowed
-- column: budget_spent ratio | part of the error budget that is spent, at constant traffic: of the month where the range is a month, else of 30 days (burn_rate x observed_s / 30 days)
-- column: worst_window | start of the long window with the highest burn rate; of equal ones the first. Windows end with a short one that has requests, and lie within the data
-- column: worst_burn | its burn rate
-- column: worst_judged requests | good and bad requests in it
-- column: last_burn | burn rate of the long window that ends with the last short one of the data
-- column: last_judged requests | good and bad requests in it
-- column: last_short_burn | burn rate of the last short window, which may have just begun
-- column: last_short_judged requests | good and bad requests in it
-- column: exhaustion_h h | how long a full budget lasts at last_burn: 30 days (the month where the range is a month) / last_burn; null where nothing burns
-- column: goodput_per_s requests/s | good requests with a time / observed_s
-- column: token_goodput tokens | output tokens of the good requests; null when none is known, or beyond 64 bits
-- column: token_counted requests | good requests whose output tokens are known
-- column: observed_s s | from the first arrival to the last end of all groups, of the same period where periods are grouped by
-- column: undated requests | requests without a time: in no window and no rate
-- column: error_rate ratio | failed / requests whose outcome is known
-- column: truncation_rate ratio | outputs that ended at a limit (finish reason length) and inputs that were cut / requests that tell one or the other
-- column: truncation_known requests | requests that tell
-- total: requests failed good bad unknown token_goodput token_counted undated
{% set long = [(window + short - 1) // short, 10000000000000] | min %}
{% set periods = dimensions | selectattr("value", "startingwith", "local_period") | map(attribute="key") | join(", ") %}
{% set whole_range = "PARTITION BY " ~ periods if periods else "" %}
{% macro burn(bad, judged) %}
CAST({{ bad }} * 100 AS DOUBLE) / nullif({{ judged }} * CAST(100 - CAST($objective AS DECIMAL(15, 12)) AS DOUBLE), 0)
{%- endmacro %}
WITH read AS (
  SELECT
    {{ keyed }}
    timestamp, {{ ended }} AS ended, failed, output_tokens,
    TRUE{{ " AND ttft_ms <= $ttft" if ttft is not none }}{{ " AND total_latency_ms <= $total" if total is not none -}}
    {{ " AND coalesce(tpot_ms <= $tpot, CASE WHEN output_tokens <= 1 THEN TRUE END)" if tpot is not none }} AS met,
    normal_reason(finish_reason) = 'length' AS output_cut, input_truncated AS input_cut,
    CASE WHEN arrow_cast(timestamp, 'Int64') >= 0 THEN arrow_cast(timestamp, 'Int64') / 1000000
      ELSE (arrow_cast(timestamp, 'Int64') + 1) / 1000000 - 1 END AS ms
  FROM {{ logs }}
),
judged AS (
  SELECT *, CASE WHEN failed THEN FALSE ELSE met END AS good,
    CASE WHEN ms >= 0 THEN ms / $short ELSE (ms + 1) / $short - 1 END AS slot
  FROM read
)
SELECT {{ keys }}slot,
  count(*) AS requests, count(*) FILTER (WHERE failed) AS failed, count(failed) AS with_outcome,
  count(*) FILTER (WHERE good) AS good, count(*) FILTER (WHERE NOT good) AS bad,
  sum(CAST(output_tokens AS DECIMAL(38, 0))) FILTER (WHERE good) AS tokens, count(output_tokens) FILTER (WHERE good) AS token_counted,
  count(*) FILTER (WHERE output_cut OR input_cut) AS truncated,
  count(*) FILTER (WHERE output_cut IS NOT NULL OR input_cut IS NOT NULL) AS truncation_known,
  min(timestamp) AS began, max(CASE WHEN timestamp IS NOT NULL THEN greatest(timestamp, ended) END) AS ended
FROM judged
GROUP BY {{ keys }}slot
-- step: slots
WITH summed AS (
  SELECT {{ keys }}
{% for count in ["requests", "failed", "with_outcome", "good", "bad", "token_counted", "truncated", "truncation_known"] %}
    coalesce(sum({{ count }}), 0) AS {{ count }},
{% endfor %}
    coalesce(sum(requests) FILTER (WHERE slot IS NULL), 0) AS undated, sum(good) FILTER (WHERE slot IS NOT NULL) AS dated_good,
    TRY_CAST(sum(tokens) AS BIGINT) AS tokens,
    min(began) AS began, max(ended) AS ended, min(slot) AS first_slot, max(slot) AS last_slot
  FROM slots
  {{ group_by }}
),
grouped AS (
  SELECT * EXCEPT (began, ended, first_slot, last_slot),
    CAST(CAST(arrow_cast(max(ended) OVER ({{ whole_range }}), 'Int64') AS DECIMAL(38, 0))
      - arrow_cast(min(began) OVER ({{ whole_range }}), 'Int64') AS DOUBLE) / 1e9 AS observed_s,
    min(first_slot) OVER ({{ whole_range }}) AS first_start, max(last_slot) OVER ({{ whole_range }}) AS last_end,
    least(min(first_slot) OVER ({{ whole_range }}) + {{ long - 1 }}, max(last_slot) OVER ({{ whole_range }})) AS first_end
  FROM summed
),
dated AS (
-- of groups that say something
  SELECT slots.*, first_end, last_end FROM slots JOIN grouped ON {{ same_keys("slots", "grouped") }}
  WHERE slot IS NOT NULL AND grouped.good + grouped.bad >= $min_count
),
ends AS (
-- each group has the first window that lies within the data, and the last
  SELECT {{ keys }}slot, good, bad, first_end, last_end FROM dated
{% for end in ["first_end", "last_end"] %}
  UNION ALL
  SELECT {{ keys }}{{ end }} AS slot, CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), first_end, last_end FROM grouped WHERE {{ end }} IS NOT NULL AND good + bad >= $min_count
{% endfor %}
),
slid AS (
  SELECT {{ keys }}slot, first_end, last_end,
    coalesce(sum(bad) OVER long, 0) AS bad, coalesce(sum(good + bad) OVER long, 0) AS judged,
    coalesce(sum(bad) OVER short, 0) AS short_bad, coalesce(sum(good + bad) OVER short, 0) AS short_judged
  FROM ends
  WINDOW long AS ({{ partition_by }} ORDER BY slot RANGE BETWEEN {{ long - 1 }} PRECEDING AND CURRENT ROW),
    short AS ({{ partition_by }} ORDER BY slot RANGE BETWEEN CURRENT ROW AND CURRENT ROW)
),
rated AS (
  SELECT *, CASE WHEN judged >= $min_count THEN CAST(bad AS DOUBLE) / nullif(judged, 0) END AS share FROM slid WHERE slot >= first_end
),
windows AS (
  SELECT {{ keys }}
    first_value(slot ORDER BY share DESC NULLS LAST, slot) AS worst_slot,
    first_value(bad ORDER BY share DESC NULLS LAST, slot) AS worst_bad,
    first_value(judged ORDER BY share DESC NULLS LAST, slot) AS worst_judged,
    max(share) IS NOT NULL AS has_worst,
    max(bad) FILTER (WHERE slot = last_end) AS last_bad, max(judged) FILTER (WHERE slot = last_end) AS last_judged,
    max(short_bad) FILTER (WHERE slot = last_end) AS last_short_bad, max(short_judged) FILTER (WHERE slot = last_end) AS last_short_judged
  FROM rated
  {{ group_by }}
),
burnt AS (
  SELECT grouped.*, good + bad AS judged, {{ burn("bad", "(good + bad)") }} AS burn_rate,
    CASE WHEN has_worst THEN TRY_CAST(CAST(greatest(worst_slot - {{ long - 1 }}, first_start) AS DECIMAL(20, 0)) * $short * 1000000 AS BIGINT) END AS worst_start,
    CASE WHEN has_worst THEN {{ burn("worst_bad", "worst_judged") }} END AS worst_burn,
    CASE WHEN has_worst THEN worst_judged END AS worst_judged,
    CASE WHEN last_judged >= $min_count THEN {{ burn("last_bad", "last_judged") }} END AS last_burn, last_judged,
    {{ burn("last_short_bad", "last_short_judged") }} AS last_short_burn, last_short_judged,
    $since = local_period($since, 'month', $zone, $week_start) AND $until = local_period($until, 'month', $zone, $week_start)
      AND arrow_cast($until, 'Int64') - arrow_cast($since, 'Int64') BETWEEN 1 AND 2764800000000000 AS is_month
  FROM grouped
  LEFT JOIN windows ON {{ same_keys("grouped", "windows") }}
),
budgeted AS (
  SELECT *,
    CASE WHEN is_month THEN (arrow_cast($until, 'Int64') - arrow_cast($since, 'Int64')) / 1e9 ELSE 2592000.0 END AS budget_s,
    {{ "CASE WHEN is_month THEN greatest(arrow_cast(least($now, $until), 'Int64') - arrow_cast($since, 'Int64'), 0) / 1e9 ELSE observed_s END" if not periods
      else "observed_s" }} AS spent_s
  FROM burnt
)
SELECT
  {{ labelled }}
  CASE WHEN judged < $min_count THEN 'info'
    WHEN CAST(bad AS DECIMAL(20, 0)) * 100 > judged * (100 - CAST($objective AS DECIMAL(15, 12))) THEN 'error'
    WHEN round(last_burn, 9) > $max_burn AND round(last_short_burn, 9) > $max_burn THEN 'warning' ELSE 'info' END AS severity,
  requests, failed, good, bad, requests - judged AS unknown,
  CAST(good AS DOUBLE) / nullif(judged, 0) AS attainment, burn_rate, burn_rate * spent_s / budget_s AS budget_spent,
  arrow_cast(worst_start, 'Timestamp(Nanosecond, Some("UTC"))') AS worst_window, worst_burn, worst_judged,
  last_burn, last_judged, last_short_burn, last_short_judged, budget_s / 3600 / nullif(last_burn, 0) AS exhaustion_h,
  dated_good / nullif(observed_s, 0) AS goodput_per_s, tokens AS token_goodput, token_counted, observed_s, undated,
  CAST(failed AS DOUBLE) / nullif(with_outcome, 0) AS error_rate,
  CAST(truncated AS DOUBLE) / nullif(truncation_known, 0) AS truncation_rate, truncation_known
FROM budgeted
ORDER BY {{ order }}requests
{{ limit }}
