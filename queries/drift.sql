-- title: Drift
-- question: What do the logs of one day lack that those of other days have, and whose inputs or outputs grew?
-- example: drift logs/
-- example: drift --fail-on warning --since 30d --tz Asia/Shanghai logs/
-- sampled: records
-- param: fail_on choice never warning error | exit with 3 where a finding is at least so severe
-- param: usual integer 20 1..1000000000 | records to be expected of a day, from which on none at all is a finding; by chance it comes once in 500 million such days at 20
-- column: severity | warning: numbers may be wrong
-- column: check | what was found, between the local days of one role
-- param: shift number 0.25 0.01..100 | how far the typical length of inputs or outputs of a business line must move, from one day on, to be a finding
-- column: found records | records of the days that lack it, or since the length moved; where there are none, as many as were to be expected
-- column: of records | records of all days of this role; of the model and business line
-- column: share ratio | found / of
-- column: example | what is lacking, with the first such day
-- column: effect | what it does to reports
-- column: fix | what helps
{% set columns = ["request_id", "session_id", "attempt", "host", "completed_at", "business_line", "tenant", "user_tag", "app", "model_name", "model_version",
  "stream", "prompt_hash", "input_tokens", "output_tokens", "cached_tokens", "queue_wait_ms", "prefill_time_ms", "decode_time_ms", "ttft_ms", "tpot_ms",
  "total_latency_ms", "gpu_id", "batch_size", "gpu_mem_peak_mb", "cache_hit", "failed", "finish_reason", "cost_logged"] %}
{% set lengths = ["input_tokens", "output_tokens"] %}
SELECT local_period(timestamp, 'day', $zone, $week_start) AS day, role, model_name, business_line,
  count(*) AS n, count(*) FILTER (WHERE failed) AS errors, count(failed) AS judged, count(CASE WHEN failed THEN NULL ELSE 1 END) AS fine,
{% for column in columns %}
  count(CASE WHEN failed THEN NULL ELSE {{ column }} END) AS known_{{ loop.index }},
{% endfor %}
{% for length in lengths %}
  count(ln(CAST(nullif({{ length }}, 0) AS DOUBLE))) AS {{ length }}_n, exact_sum(ln(CAST(nullif({{ length }}, 0) AS DOUBLE))) AS {{ length }}_ln,
  exact_sum(ln(CAST(nullif({{ length }}, 0) AS DOUBLE)) * ln(CAST(nullif({{ length }}, 0) AS DOUBLE))) AS {{ length }}_square{{ "" if loop.last else "," }}
{% endfor %}
FROM {{ logs }}
WHERE timestamp IS NOT NULL
GROUP BY day, role, model_name, business_line
-- step: parts
SELECT day, role, local_part(day, 'weekday', $zone, $week_start) AS weekday, to_char(arrow_cast(local_part(day, 'date', $zone, $week_start), 'Date32'), '%Y-%m-%d') AS date,
  sum(n) AS n, sum(errors) AS errors, sum(judged) AS judged, sum(fine) AS fine,
{% for column in columns %}
  sum(known_{{ loop.index }}) AS known_{{ loop.index }},
{% endfor %}
  count(*) OVER (PARTITION BY role) AS days, median(sum(n)) OVER (PARTITION BY role) AS usual_n,
  median(CAST(sum(errors) AS DOUBLE) / nullif(sum(judged), 0)) OVER (PARTITION BY role) AS usual_rate
FROM parts
GROUP BY day, role
-- step: days
WITH columns AS (
  SELECT day, date, role, fine, unnest(make_array({% for column in columns %}'{{ column }}'{{ "" if loop.last else ", " }}{% endfor %})) AS name,
    unnest(make_array({% for column in columns %}known_{{ loop.index }}{{ "" if loop.last else ", " }}{% endfor %})) AS known
  FROM days
  WHERE fine >= $usual
),
changed AS (
  SELECT role, name, sum(fine) AS n, sum(CASE WHEN known < 0.1 * fine THEN fine ELSE 0 END) AS lacking,
    min(CASE WHEN known < 0.1 * fine THEN date END) AS without, min(CASE WHEN known > 0.9 * fine THEN date END) AS within
  FROM columns
  GROUP BY role, name
),
strata AS (
  SELECT role, model_name, business_line, sum(n) AS n, count(*) AS present, min(day) AS since
  FROM parts
  WHERE model_name IS NOT NULL OR business_line IS NOT NULL
  GROUP BY role, model_name, business_line
  HAVING sum(n) >= $usual
),
expected AS (
-- as many as on its other days, as a part of all, from its first day on; what never comes on that weekday is no finding
  SELECT strata.*, days.day, days.date, parts.n AS here, days.n AS whole, days.usual_n,
    sum(parts.n) OVER (PARTITION BY days.role, strata.model_name, strata.business_line, days.weekday) AS on_weekday,
    count(*) OVER (PARTITION BY days.role, strata.model_name, strata.business_line, days.weekday) AS weekdays,
    CAST(strata.n AS DOUBLE) / sum(CASE WHEN parts.n > 0 THEN days.n END) OVER (PARTITION BY days.role, strata.model_name, strata.business_line) * days.n AS usual_here
  FROM strata
  JOIN days ON (strata.role IS NOT DISTINCT FROM days.role) AND days.day >= strata.since AND 2 * strata.present > days.days
  LEFT JOIN parts ON parts.day = days.day AND (parts.role IS NOT DISTINCT FROM strata.role)
    AND (parts.model_name IS NOT DISTINCT FROM strata.model_name) AND (parts.business_line IS NOT DISTINCT FROM strata.business_line)
),
typical AS (
-- of each day the mean logarithm, and how far it strays by chance
{% for length in lengths %}
  SELECT '{{ length }}' AS name, role, business_line, day, sum({{ length }}_n) AS n, exact_sum({{ length }}_ln) / sum({{ length }}_n) AS mean,
    greatest(exact_sum({{ length }}_square) / sum({{ length }}_n) - power(exact_sum({{ length }}_ln) / sum({{ length }}_n), 2), 0) / sum({{ length }}_n) AS chance
  FROM parts
  WHERE business_line IS NOT NULL
  GROUP BY role, business_line, day
  HAVING sum({{ length }}_n) >= $usual
  {{ "" if loop.last else "UNION ALL" }}
{% endfor %}
),
summed AS (
  SELECT *,
{% for part in ["before", "whole"] %}
    count(mean) OVER {{ part }} AS {{ part }}_days, exact_sum(mean) OVER {{ part }} AS {{ part }}_sum, exact_sum(mean * mean) OVER {{ part }} AS {{ part }}_squares,
    coalesce(sum(n) OVER {{ part }}, 0) AS {{ part }}_n,
{% endfor %}
    exact_sum(chance) OVER whole AS chances
  FROM typical
  WINDOW before AS (PARTITION BY name, role, business_line ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
    whole AS (PARTITION BY name, role, business_line)
),
cut AS (
  SELECT *, whole_days - before_days AS after_days, whole_sum - before_sum AS after_sum, whole_squares - before_squares AS after_squares,
    whole_n - before_n AS after_n
  FROM summed
),
moved AS (
-- in standard errors of the days around their mean on either side, and no less than chance alone would make of it
  SELECT name, role, business_line, day, after_n, whole_n, after_sum / after_days - before_sum / before_days AS moved,
    (after_sum / after_days - before_sum / before_days) / sqrt(greatest(
      (before_squares - before_sum * before_sum / before_days + after_squares - after_sum * after_sum / after_days) / (before_days + after_days - 2),
      chances / (before_days + after_days)) * (1.0 / before_days + 1.0 / after_days)) AS errors
  FROM cut
  WHERE before_days >= 2 AND after_days >= 2
),
shifted AS (
  SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY name, role, business_line ORDER BY abs(errors) DESC, day) AS place FROM moved)
  WHERE place = 1 AND abs(errors) >= 8 AND abs(moved) >= ln(1 + $shift)
),
findings AS (
  SELECT CASE WHEN moved > 0 THEN 'longer ' ELSE 'shorter ' END || CASE name WHEN 'input_tokens' THEN 'inputs' ELSE 'outputs' END || ' of a business line' AS "check",
    CAST(after_n AS BIGINT) AS found, CAST(whole_n AS BIGINT) AS "of",
    business_line || coalesce(' of the ' || role, '') || ': x ' || CAST(round(exp(moved), 2) AS VARCHAR) || ' since ' || CAST(arrow_cast(local_part(day, 'date', $zone, $week_start), 'Date32') AS VARCHAR) AS example,
    'latency, memory and cost follow' AS effect, 'compare these days with those before: compare --split day' AS fix
  FROM shifted
  UNION ALL
  SELECT 'a column that comes and goes' AS "check", CAST(lacking AS BIGINT) AS found, CAST(n AS BIGINT) AS "of",
    name || coalesce(' of the ' || role, '') || ': not on ' || without || ', but on ' || within AS example,
    'reports over these days leave records out' AS effect, 'a new version of what logs it: tell the profile both names' AS fix
  FROM changed
  WHERE without IS NOT NULL AND within IS NOT NULL
  UNION ALL
  SELECT 'a model of a business line that is gone for a day', CAST(round(exact_sum(usual_here)) AS BIGINT), CAST(n AS BIGINT),
    concat_ws(', ', model_name, business_line) || coalesce(' of the ' || role, '') || ': none on ' || min(date),
    'sums and shares of these days are too low', 'find out whether it was switched off, or a log or a sampler lost it'
  FROM expected
  WHERE here IS NULL AND usual_here >= $usual AND 3 * whole >= usual_n AND (on_weekday > 0 OR weekdays = 1)
  GROUP BY role, model_name, business_line, n
  UNION ALL
  SELECT 'no errors at all on a day', CAST(sum(judged) AS BIGINT), CAST(max(everything) AS BIGINT),
    'none on ' || min(date) || coalesce(' of the ' || role, '') || ', usually ' || CAST(round(max(100 * usual_rate), 2) AS VARCHAR) || ' %',
    'error rates are too low', 'find out whether failed requests were logged on that day'
  FROM (SELECT *, sum(judged) OVER (PARTITION BY role) AS everything FROM days)
  WHERE errors = 0 AND usual_rate * judged >= $usual
  GROUP BY role
)
SELECT 'warning' AS severity, "check", found, "of", CAST(found AS DOUBLE) / nullif("of", 0) AS share, example, effect, fix
FROM findings
ORDER BY {{ order }}share DESC, "check", example
{{ limit }}
