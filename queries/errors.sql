-- title: Errors
-- question: What fails, at which stage, since when, and whom does it hit; and what fails behind a success?
-- example: errors logs/
-- example: errors --by gpu,hour --since 24h logs/
-- param: by dimensions | what to group by, besides code and stage
-- param: time_axis choice arrival failure | first and last seen by the arrival of requests, or by when they failed
-- param: min_count integer 1 | leave out rows with fewer errors
-- column: kind | failed; or behind a success: truncated (length), filtered (content_filter), empty (no output)
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
-- column: input_tokens tokens | input tokens of these requests; null when none is known
-- column: output_tokens tokens | output tokens of these requests; null when none is known
-- column: first_seen | the first of them
-- column: last_seen | the last of them
-- total: errors after_first_token

WITH read AS (
  SELECT
{% for dimension in dimensions %}
    {{ dimension.value }} AS {{ dimension.key }},
{% endfor %}
    failed, status, error_code, error_stage, http_status, finish_reason, tenant, user_tag, input_tokens, output_tokens,
    {{ "coalesce(completed_at, timestamp)" if time_axis == "failure" else "timestamp" }} AS seen,
    coalesce(output_tokens > 0, first_token_at IS NOT NULL OR ttft_ms IS NOT NULL) AS after_first_token,
    scheduled_at IS NOT NULL OR prefill_time_ms IS NOT NULL AS was_scheduled,
    lower(finish_reason) AS reason,
    CAST(array_position(CAST($error_codes AS VARCHAR[]), error_code) AS BIGINT) AS known_code
  FROM {{ logs }}
),
reasoned AS (
  SELECT *,
    CASE
      WHEN reason LIKE '%content%filter%' OR reason IN ('safety', 'refusal', 'recitation', 'blocklist') THEN 'content_filter'
      WHEN reason LIKE '%length%' OR reason LIKE '%max%tokens%' OR reason LIKE '%max%output%' THEN 'length'
      WHEN reason LIKE '%tool%' OR reason LIKE '%function%' THEN 'tool'
      WHEN reason LIKE '%abort%' OR reason LIKE '%cancel%' OR reason LIKE '%disconnect%' THEN 'abort'
      WHEN reason LIKE '%error%' OR reason LIKE '%fail%' OR reason LIKE '%time%out%' THEN 'error'
      WHEN reason LIKE '%stop%' OR reason LIKE '%end%' OR reason = 'eos' THEN 'stop'
      WHEN reason IS NOT NULL THEN 'other'
    END AS normal_reason
  FROM read
),
judged AS (
  SELECT *,
    CASE
      WHEN failed THEN 'failed'
      WHEN normal_reason = 'length' THEN 'truncated'
      WHEN normal_reason = 'content_filter' THEN 'filtered'
      WHEN output_tokens = 0 AND coalesce(normal_reason, 'stop') = 'stop' THEN 'empty'
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
    WHEN kind IS NOT NULL THEN finish_reason END AS code,
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
named AS (
-- what succeeded is one group, of which only the number counts
  SELECT
{% for dimension in dimensions %}
    {{ dimension.key }},
{% endfor %}
    kind, code, stage, seen, after_first_token, tenant, user_tag, input_tokens, output_tokens,
    CASE WHEN kind IS NOT NULL THEN array_element(CAST($error_names AS VARCHAR[]), known_code) END AS name,
    CASE WHEN stage IS NULL THEN NULL WHEN said_stage IS NULL THEN 'derived' WHEN error_stage IS NULL THEN 'settings'
      ELSE 'log' END AS stage_from,
    CASE WHEN kind IS NOT NULL THEN normal_reason END AS normal_reason
  FROM staged
),
grouped AS (
  SELECT
{% for dimension in dimensions %}
    {{ dimension.key }},
{% endfor %}
    kind, code, name, stage, stage_from, normal_reason,
    count(*) AS requests,
    count(*) FILTER (WHERE after_first_token) AS after_first_token,
    nullif(count(DISTINCT CASE WHEN kind IS NOT NULL THEN tenant END), 0) AS tenants,
    nullif(count(DISTINCT CASE WHEN kind IS NOT NULL THEN user_tag END), 0) AS users,
    TRY_CAST(sum(CAST(input_tokens AS DECIMAL(38, 0))) AS BIGINT) AS input_tokens,
    TRY_CAST(sum(CAST(output_tokens AS DECIMAL(38, 0))) AS BIGINT) AS output_tokens,
    min(seen) AS first_seen, max(seen) AS last_seen
  FROM named
  GROUP BY {{ (dimensions | map(attribute="key") | list + ["kind", "code", "name", "stage", "stage_from", "normal_reason"]) | join(", ") }}
),
shared AS (
  SELECT *,
    sum(requests) OVER ({{ "PARTITION BY " ~ (dimensions | map(attribute="key") | join(", ")) if dimensions }}) AS all_requests,
    sum(CASE WHEN kind IS NOT NULL THEN requests END)
      OVER ({{ "PARTITION BY " ~ (dimensions | map(attribute="key") | join(", ")) if dimensions }}) AS all_errors
  FROM grouped
)
SELECT
{% for dimension in dimensions %}
  {{ dimension.label }} AS {{ dimension.name }},
{% endfor %}
  kind, code, name, stage, stage_from, normal_reason AS finish_reason, requests AS errors,
  CAST(requests AS DOUBLE) / all_requests AS share_of_requests,
  CAST(requests AS DOUBLE) / all_errors AS share_of_errors,
  after_first_token, tenants, users, input_tokens, output_tokens, first_seen, last_seen
FROM shared
WHERE kind IS NOT NULL AND requests >= $min_count
ORDER BY {{ order }}requests DESC, kind, code, stage, stage_from, normal_reason, name
{{ limit }}
