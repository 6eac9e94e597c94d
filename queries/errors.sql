-- title: Errors
-- question: What fails, at which stage, since when, and whom does it hit; and what fails behind a success?
-- example: errors logs/
-- example: errors --by gpu,hour --since 24h logs/
-- param: by dimensions | what to group by, besides code and stage; with --find, what else requests may have in common
-- param: time_axis choice arrival failure | first and last seen by the arrival of requests, or by when they failed
-- param: min_count integer 1 0..1000000000 | leave out rows with fewer errors
-- param: find flag false | rank what has more errors than others at the same hour with inputs of the same length, beyond chance
-- pivot: errors
-- column: severity | warning; info where longer inputs fail more often, which is their nature, or may be the reason as lengths are not known
-- column: factor | what the requests have in common
-- column: value | its value
-- column: requests requests | all requests with that value
-- column: rate ratio | errors / requests
-- column: expected requests | errors, had these requests failed as often as all others of the same hour and input bucket
-- column: lift | errors / expected
-- column: low | lower bound of the lift at 95 %, for as many looks as were taken (Byar's bounds of a Poisson count, Bonferroni)
-- column: high | upper bound of the lift
-- column: kind | failed; or behind a success: truncated (length), filtered (content_filter), empty (no output), unfinished (no finish reason, where nine in ten answers have one; not with --find)
-- column: code | the error code as logged, else the HTTP status, the finish reason or the status
-- column: name | what the settings call the code
-- column: stage | the stage that failed
-- column: stage_from | who says so: the log, the settings, or derived from the status and from what the request had reached
-- column: finish_reason | why generation ended, normalised: length, content_filter, tool, abort, error, stop, other
-- column: errors requests | requests that ended so
-- column: share_of_requests ratio | errors / all requests of the group
-- column: share_of_errors ratio | errors / all rows of the group
-- column: after_first_token requests | errors that had output already
-- column: tenants | different tenants that were hit; null when none is known
-- column: users | different users that were hit; null when none is known
-- column: input_tokens tokens | input tokens of these requests; null when none is known, or beyond 64 bits
-- column: output_tokens tokens | output tokens of these requests; null when none is known
-- column: first_seen | the first of them
-- column: last_seen | the last of them
-- total: errors after_first_token

{% set factors = [
  {"name": "model", "value": "model_name"}, {"name": "version", "value": "model_version"},
  {"name": "business line", "value": "business_line"}, {"name": "tenant", "value": "tenant"}, {"name": "app", "value": "app"},
  {"name": "gpu", "value": "gpu_id"}, {"name": "gpu pool", "value": "gpu_pool"}, {"name": "host", "value": "host"},
  {"name": "service", "value": "service"}, {"name": "provider", "value": "provider"}, {"name": "deployment", "value": "deployment"},
  {"name": "prompt version", "value": "prompt_version"}, {"name": "stream", "value": "stream"}, {"name": "priority", "value": "priority"},
  {"name": "id prefix", "value": "regexp_match(request_id, '^[A-Za-z]+[-_:.]?')[1]"},
  {"name": "text", "value": "coalesce(text_features(request_id, business_line, tenant, user_tag, app, tags, session_id), 'plain')"},
] %}
{% set everything = factors | length + dimensions | length + 1 %}
WITH read AS (
  SELECT
    {{ keyed }}
    failed, status, error_code, error_stage, http_status, finish_reason, tenant, user_tag, input_tokens, output_tokens,
    {{ "coalesce(" ~ ended ~ ", timestamp)" if time_axis == "failure" else "timestamp" }} AS seen,
    coalesce(output_tokens > 0, first_token_at IS NOT NULL OR ttft_ms IS NOT NULL) AS after_first_token,
    scheduled_at IS NOT NULL OR prefill_time_ms IS NOT NULL AS was_scheduled,
{% if find %}
    local_period(timestamp, 'hour', $zone, $week_start) AS hour, bucket(input_tokens, $input_edges) AS cell,
{% for factor in factors %}
    CAST({{ factor.value }} AS VARCHAR) AS factor_{{ loop.index }},
{% endfor %}
{% for dimension in dimensions %}
    CAST({{ dimension.value }} AS VARCHAR) AS asked_{{ loop.index }},
{% endfor %}
{% endif %}
    CAST(array_position(CAST($error_codes AS VARCHAR[]), error_code) AS BIGINT) AS known_code
  FROM {{ logs }}
),
reasoned AS (
  SELECT *, normal_reason(finish_reason) AS normal_reason FROM read
),
judged AS (
  SELECT *,
    CASE
      WHEN failed THEN 'failed'
      WHEN normal_reason = 'length' THEN 'truncated'
      WHEN normal_reason = 'content_filter' THEN 'filtered'
      WHEN output_tokens = 0 AND coalesce(normal_reason, 'stop') = 'stop' THEN 'empty'
{% if not find %}
      WHEN failed = false AND finish_reason IS NULL AND output_tokens > 0 THEN 'unfinished'
{% endif %}
    END AS kind
  FROM reasoned
),
told AS (
  SELECT *,
    CASE WHEN kind = 'failed' THEN
      coalesce(
        CASE WHEN error_code NOT IN ('', '0') THEN error_code END,
        CASE WHEN http_status >= 400 THEN CAST(http_status AS VARCHAR) END,
        CASE WHEN normal_reason IN ('abort', 'error') THEN finish_reason END,
        status, 'unknown')
    WHEN kind IS NOT NULL THEN coalesce(finish_reason, CASE kind WHEN 'unfinished' THEN CAST(http_status AS VARCHAR) END) END AS code,
    CASE WHEN kind IS NOT NULL THEN coalesce(error_stage, array_element(CAST($error_stages AS VARCHAR[]), known_code)) END AS said_stage,
    coalesce(http_status, TRY_CAST(error_code AS BIGINT)) AS http
  FROM judged
),
staged AS (
  SELECT *,
    CASE WHEN kind IS NULL THEN NULL WHEN said_stage IS NOT NULL THEN said_stage
      WHEN kind <> 'failed' THEN 'decode'
      WHEN http IN (400, 413, 422) THEN 'validation'
      WHEN http IN (401, 403) THEN 'auth'
      WHEN http = 429 OR lower(code) LIKE '%rate%limit%' OR lower(code) LIKE '%throttl%' THEN 'admission'
      WHEN after_first_token THEN 'decode'
      WHEN http = 499 OR normal_reason = 'abort' THEN 'cancelled'
      WHEN http IN (502, 503) AND NOT was_scheduled THEN 'upstream'
      WHEN was_scheduled THEN 'prefill'
    END AS stage
  FROM told
),
{% if find %}
counted AS (
  SELECT unnest(breakdown(hour, cell,
    CASE WHEN kind IS NOT NULL THEN concat(kind, chr(31), coalesce(code, chr(30)), chr(31), coalesce(stage, chr(30))) END, seen,
    {% for factor in factors %}factor_{{ loop.index }}, {% endfor %}{% for dimension in dimensions %}asked_{{ loop.index }}, {% endfor %}'all')) AS part
  FROM staged
),
numbered AS (
  SELECT part['factor'] AS number, part['value'] AS value, part['hour'] AS hour, part['cell'] AS cell, part['error'] AS error,
    part['n'] AS n, part['first_seen'] AS first_seen, part['last_seen'] AS last_seen
  FROM counted
)
SELECT CASE number{% for factor in factors %} WHEN {{ loop.index }} THEN '{{ factor.name }}'{% endfor %}{% for dimension in dimensions %} WHEN {{ factors | length + loop.index }} THEN '{{ dimension.name | replace("'", "") }}'{% endfor %} END AS factor,
  number, value, hour, cell, error, n, first_seen, last_seen
FROM numbered
-- step: counts
{% set day = "CAST(arrow_cast(local_part(hour, 'date', $zone, $week_start), 'Date32') AS VARCHAR)" %}
WITH listed AS (
  SELECT factor, value, hour, cell, error, n, first_seen, last_seen FROM counts WHERE factor IS NOT NULL
  UNION ALL
-- a length is not held against others of its own length
  SELECT 'input bucket', bucket_label(cell, $input_edges), hour, -1, error, n, first_seen, last_seen
  FROM counts WHERE number = {{ everything }} AND cell IS NOT NULL
  UNION ALL
  SELECT 'version, input bucket', concat(value, ', ', bucket_label(cell, $input_edges)), hour, cell, error, n, first_seen, last_seen
  FROM counts WHERE factor = 'version' AND cell IS NOT NULL
  UNION ALL
  SELECT 'gpu, hour', concat(value, ', ', to_char(hour, '%Y-%m-%dT%H:%MZ')), hour, cell, error, n, first_seen, last_seen
  FROM counts WHERE factor = 'gpu' AND hour IS NOT NULL
  UNION ALL
  SELECT 'business line, day', concat(value, ', ', {{ day }}), hour, cell, error, n, first_seen, last_seen
  FROM counts WHERE factor = 'business line' AND hour IS NOT NULL
)
-- without nulls, so that joins go by all columns
SELECT factor, value, coalesce(arrow_cast(hour, 'Int64'), -1) AS hour, coalesce(cell, -2) AS cell, error, n, first_seen, last_seen FROM listed
-- step: long
WITH observed AS (
  SELECT factor, value, error, sum(n) AS errors, min(first_seen) AS first_seen, max(last_seen) AS last_seen
  FROM long WHERE error IS NOT NULL
  GROUP BY factor, value, error
),
others AS (
-- of one hour and length: how often each error came
  SELECT factor, hour, cell, error, CAST(sum(n) AS DOUBLE) / max(everything) AS rate
  FROM (SELECT *, sum(n) OVER (PARTITION BY factor, hour, cell) AS everything FROM long)
  WHERE error IS NOT NULL
  GROUP BY factor, hour, cell, error
),
present AS (
  SELECT factor, value, hour, cell, sum(n) AS n FROM long GROUP BY factor, value, hour, cell
),
sized AS (
  SELECT factor, value, sum(n) AS requests, sum(CASE WHEN cell = -2 THEN n ELSE 0 END) AS of_unknown_length
  FROM present GROUP BY factor, value
),
foreseen AS (
  SELECT present.factor, present.value, error, exact_sum(n * rate) AS expected
  FROM present
  JOIN others ON present.factor = others.factor AND present.hour = others.hour AND present.cell = others.cell
  GROUP BY present.factor, present.value, error
),
tested AS (
  SELECT observed.*, requests, of_unknown_length, expected, sqrt(-2 * ln(0.025 / count(*) OVER ())) AS t
  FROM observed
  JOIN foreseen ON observed.factor = foreseen.factor AND observed.value = foreseen.value AND observed.error = foreseen.error
  JOIN sized ON observed.factor = sized.factor AND observed.value = sized.value
),
bounded AS (
-- the quantile of the normal distribution by Abramowitz and Stegun, 26.2.23
  SELECT *, t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t) AS z
  FROM tested
)
SELECT CASE WHEN factor LIKE '%input bucket' OR 2 * of_unknown_length > requests THEN 'info' ELSE 'warning' END AS severity,
  split_part(error, chr(31), 1) AS kind, nullif(split_part(error, chr(31), 2), chr(30)) AS code, nullif(split_part(error, chr(31), 3), chr(30)) AS stage,
  factor, value, errors, requests, CAST(errors AS DOUBLE) / requests AS rate, expected,
  errors / expected AS lift,
  errors * power(1 - 1 / (9.0 * errors) - z / (3 * sqrt(errors)), 3) / expected AS low,
  (errors + 1) * power(1 - 1 / (9.0 * (errors + 1)) + z / (3 * sqrt(errors + 1)), 3) / expected AS high,
  first_seen, last_seen
FROM bounded
WHERE errors >= greatest($min_count, 5) AND errors * power(greatest(1 - 1 / (9.0 * errors) - z / (3 * sqrt(errors)), 0), 3) > expected
ORDER BY {{ sort }}severity DESC, errors - expected DESC, error, factor, value
{% else %}
named AS (
-- what succeeded is one group, of which only the number counts
  SELECT
    {{ keys }}
    kind, code, stage, seen, after_first_token, finish_reason, tenant, user_tag, input_tokens, output_tokens,
    CASE WHEN kind IS NOT NULL THEN array_element(CAST($error_names AS VARCHAR[]), known_code) END AS name,
    CASE WHEN stage IS NULL THEN NULL WHEN said_stage IS NULL THEN 'derived' WHEN error_stage IS NULL THEN 'settings'
      ELSE 'log' END AS stage_from,
    CASE WHEN kind IS NOT NULL THEN normal_reason END AS normal_reason
  FROM staged
),
grouped AS (
  SELECT
    {{ keys }}
    kind, code, name, stage, stage_from, normal_reason,
    count(*) AS requests, count(finish_reason) AS with_reason,
    count(*) FILTER (WHERE after_first_token) AS after_first_token,
    nullif(count(DISTINCT CASE WHEN kind IS NOT NULL THEN tenant END), 0) AS tenants,
    nullif(count(DISTINCT CASE WHEN kind IS NOT NULL THEN user_tag END), 0) AS users,
    TRY_CAST(sum(CAST(input_tokens AS DECIMAL(38, 0))) AS BIGINT) AS input_tokens,
    TRY_CAST(sum(CAST(output_tokens AS DECIMAL(38, 0))) AS BIGINT) AS output_tokens,
    min(seen) AS first_seen, max(seen) AS last_seen
  FROM named
  GROUP BY {{ keys }}kind, code, name, stage, stage_from, normal_reason
),
told_apart AS (
-- where many answers have no reason, its lack says nothing
  SELECT *, CASE WHEN kind <> 'unfinished' OR 9 * unfinished < with_any THEN kind END AS shown_kind
  FROM (SELECT *, sum(CASE kind WHEN 'unfinished' THEN requests ELSE 0 END) OVER () AS unfinished, sum(with_reason) OVER () AS with_any FROM grouped)
),
shared AS (
  SELECT * EXCEPT (kind, shown_kind), shown_kind AS kind,
    sum(requests) OVER ({{ partition_by }}) AS all_requests,
    sum(CASE WHEN shown_kind IS NOT NULL THEN requests END)
      OVER ({{ partition_by }}) AS all_errors
  FROM told_apart
)
SELECT
  {{ labelled }}
  kind, code, name, stage, stage_from, normal_reason AS finish_reason, requests AS errors,
  CAST(requests AS DOUBLE) / all_requests AS share_of_requests,
  CAST(requests AS DOUBLE) / all_errors AS share_of_errors,
  after_first_token, tenants, users, input_tokens, output_tokens, first_seen, last_seen
FROM shared
WHERE kind IS NOT NULL AND requests >= $min_count
ORDER BY {{ order }}requests DESC, kind, code, stage, stage_from, normal_reason, name
{% endif %}
{{ limit }}
