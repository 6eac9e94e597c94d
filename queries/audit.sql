-- title: Audit
-- question: Can these logs be trusted: what is missing, doubled, impossible, or should not be in them?
-- example: audit logs/
-- example: audit --fail-on error --since 24h logs/
-- param: fail_on choice never warning error | exit with 3 where a finding is at least so severe
-- param: tolerance number 0.02 0..1 | how far stages may add up to another total, and parts to other tokens
-- column: severity | error: numbers are wrong; warning: they may be; info: good to know
-- column: check | what was found
-- column: found records | how many there are
-- column: of records | among how many that could be so
-- column: share ratio | found / of
-- column: example | one of them: its file and the byte where its record starts, or its id
-- column: effect | what it does to reports
-- column: fix | what helps
{% set control = "'[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f]'" %}
{% set bidi = "'[\\u{202A}-\\u{202E}\\u{2066}-\\u{2069}\\u{200E}\\u{200F}]'" %}
{% set texts = "concat_ws(' ', request_id, business_line, tenant, user_tag, app, tags, session_id, error_code)" %}
{% set stages = "coalesce(auth_ms, 0) + coalesce(preprocess_ms, 0) + coalesce(queue_wait_ms, 0) + coalesce(prefill_time_ms, 0) + coalesce(decode_time_ms, 0) + coalesce(postprocess_ms, 0) + coalesce(network_ms, 0)" %}
{% set of_records = [
  {"severity": "warning", "check": "no request id", "of": "true", "is": "request_id IS NULL",
   "effect": "cannot be merged, traced, or told from duplicates", "fix": "log an id with every record"},
  {"severity": "warning", "check": "no timestamp", "of": "true", "is": "timestamp IS NULL",
   "effect": "outside every time range and trend", "fix": "log the arrival, or give --clock-start or --map"},
  {"severity": "info", "check": "outcome unknown", "of": "true", "is": "failed IS NULL",
   "effect": "counted and measured like a success", "fix": "log a status, an HTTP status or a finish reason"},
  {"severity": "error", "check": "TTFT above the total", "of": "ttft_ms IS NOT NULL AND total_latency_ms IS NOT NULL", "is": "ttft_ms > total_latency_ms * 1.001 + 1",
   "effect": "units or clocks are mixed up", "fix": "look at the units with `inspect`, then --map"},
  {"severity": "error", "check": "stages longer than the total", "of": "total_latency_ms > 0", "is": "(" ~ stages ~ ") > total_latency_ms * (1 + $tolerance) + 5",
   "effect": "stage shares are wrong", "fix": "look at the units and at what each stage measures"},
  {"severity": "error", "check": "no time with output", "of": "failed IS NOT TRUE AND output_tokens > 1 AND total_latency_ms IS NOT NULL", "is": "total_latency_ms = 0",
   "effect": "percentiles are too low", "fix": "a zero that stands for unknown: leave it out of the log"},
  {"severity": "error", "check": "end before arrival", "of": "completed_at IS NOT NULL AND timestamp IS NOT NULL", "is": "completed_at < timestamp",
   "effect": "totals are wrong", "fix": "two clocks or zones: give the source its source_tz"},
  {"severity": "error", "check": "cached tokens above the input", "of": "cached_tokens IS NOT NULL AND input_tokens IS NOT NULL", "is": "cached_tokens > input_tokens",
   "effect": "hit ratios above 1", "fix": "the source leaves cached tokens out of its input: use a profile that adds them"},
  {"severity": "warning", "check": "total tokens are not input + output", "of": "total_tokens IS NOT NULL AND input_tokens IS NOT NULL AND output_tokens IS NOT NULL", "is": "abs(total_tokens - input_tokens - output_tokens) > total_tokens * $tolerance + 2",
   "effect": "a class of tokens is missed or counted twice", "fix": "find out whether cached or reasoning tokens are inside"},
  {"severity": "info", "check": "a success without output", "of": "failed = false AND output_tokens IS NOT NULL", "is": "output_tokens = 0",
   "effect": "counted as a success", "fix": "see `errors`: kind empty"},
  {"severity": "info", "check": "sampled records", "of": "true", "is": "sample_weight <> 1",
   "effect": "counts are of records, not of requests", "fix": "log the rate, and all errors"},
  {"severity": "warning", "check": "control characters in a text", "of": "true", "is": "regexp_like(" ~ texts ~ ", " ~ control ~ ")",
   "effect": "breaks what reads the log line by line", "fix": "escape them where they are logged"},
  {"severity": "warning", "check": "direction marks in a text", "of": "true", "is": "regexp_like(" ~ texts ~ ", " ~ bidi ~ ")",
   "effect": "ids look alike and are not equal", "fix": "strip them where they come in"},
  {"severity": "error", "check": "an e-mail address", "of": "true", "is": "regexp_like(" ~ texts ~ ", '[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+\\.[A-Za-z]{2,}')",
   "effect": "personal data in the log and in every report by that column", "fix": "log an id in its place"},
  {"severity": "error", "check": "a key or token", "of": "true", "is": "regexp_like(" ~ texts ~ ", '(sk-|ghp_|xox[bp]-|AKIA)[A-Za-z0-9_-]{16,}|eyJ[A-Za-z0-9_-]{10,}\\.eyJ')",
   "effect": "a secret in the log", "fix": "revoke it, and mask it where it is logged"},
  {"severity": "error", "check": "a phone number", "of": "true", "is": "regexp_like(" ~ texts ~ ", '(^|[^0-9A-Za-z])(\\+[1-9][0-9]{9,13}|1[3-9][0-9]{9})($|[^0-9A-Za-z])')",
   "effect": "personal data in the log and in every report by that column", "fix": "log an id in its place"},
] %}
{% set of_ids = [
  {"severity": "warning", "check": "no token counts", "found": "count(*) FILTER (WHERE NOT counted AND NOT failed)", "of": "count(*) FILTER (WHERE NOT failed)", "example": "min(CASE WHEN NOT counted AND NOT failed THEN id END)",
   "effect": "outside buckets, and costs nobody anything", "fix": "ask for usage, in streams too (include_usage)"},
  {"severity": "error", "check": "duplicate records", "found": "coalesce(sum(doubles), 0)", "of": "sum(records)", "example": "min(CASE WHEN doubles > 0 THEN id END)",
   "effect": "counted twice in reports over records", "fix": "ask with --requests, and find out who sends the log twice"},
  {"severity": "warning", "check": "in the gateway's log, not in the engine's", "found": "count(*) FILTER (WHERE gateway > 0 AND engine = 0 AND NOT refused AND has_common)", "of": "count(*) FILTER (WHERE gateway > 0 AND NOT refused AND has_common)", "example": "min(CASE WHEN gateway > 0 AND engine = 0 AND NOT refused AND has_common THEN id END)",
   "effect": "no stages are known of them", "fix": "lost between gateway and engine, or its log is not complete"},
  {"severity": "warning", "check": "in the engine's log, not in the gateway's", "found": "count(*) FILTER (WHERE engine > 0 AND gateway = 0 AND has_common)", "of": "count(*) FILTER (WHERE engine > 0 AND has_common)", "example": "min(CASE WHEN engine > 0 AND gateway = 0 AND has_common THEN id END)",
   "effect": "nobody is known who sent them", "fix": "requests that go around the gateway, or ids that are made anew"},
  {"severity": "warning", "check": "no id is common to gateway and engine", "found": "CASE WHEN bool_or(gateway > 0) AND bool_or(engine > 0) AND NOT bool_or(has_common) THEN count(*) FILTER (WHERE gateway > 0 OR engine > 0) ELSE 0 END", "of": "count(*) FILTER (WHERE gateway > 0 OR engine > 0)", "example": "min(CASE WHEN gateway > 0 THEN id END)",
   "effect": "nothing can be merged", "fix": "pass the id on (x-request-id), give the profile its prefix, or --match asof"},
  {"severity": "error", "check": "the engine's clock is off by a minute or more", "found": "CASE WHEN abs(median(lag_ms)) >= 60000 THEN count(lag_ms) ELSE 0 END", "of": "count(lag_ms)", "example": "CAST(round(median(lag_ms) / 1000) AS VARCHAR) || ' s'",
   "effect": "time ranges and trends miss its records", "fix": "a whole number of hours is a zone: give its source that source_tz; else --fix-skew"},
] %}
WITH read AS (
  SELECT *, source_file || coalesce(', byte ' || CAST(source_offset AS VARCHAR), '') AS place FROM {{ logs }}
)
SELECT
{% for check in of_records %}
  count(*) FILTER (WHERE ({{ check.of }}) AND ({{ check.is }})) AS found_{{ loop.index }}, count(*) FILTER (WHERE {{ check.of }}) AS of_{{ loop.index }},
  min(CASE WHEN ({{ check.of }}) AND ({{ check.is }}) THEN place END) AS example_{{ loop.index }}{{ "" if loop.last else "," }}
{% endfor %}
FROM read
-- step: records
WITH same AS (
  SELECT coalesce(request_id, source_file || coalesce(', byte ' || CAST(source_offset AS VARCHAR), '')) AS id, role, timestamp,
    count(*) AS n, bool_or(coalesce(http_status >= 400 OR failed, false)) AS failed,
    bool_or(input_tokens IS NOT NULL OR output_tokens IS NOT NULL) AS counted
  FROM {{ logs }}
  GROUP BY id, role, timestamp, attempt, model_name, input_tokens, output_tokens, total_latency_ms, status, error_code
),
ids AS (
  SELECT id, sum(n) AS records, sum(n - 1) AS doubles, bool_or(failed) AS failed, bool_or(counted) AS counted,
    coalesce(bool_or(failed AND role = 'gateway'), false) AS refused,
    count(*) FILTER (WHERE role = 'gateway') AS gateway, count(*) FILTER (WHERE role = 'engine') AS engine,
    (arrow_cast(min(timestamp) FILTER (WHERE role = 'engine'), 'Int64')
      - arrow_cast(min(timestamp) FILTER (WHERE role = 'gateway'), 'Int64')) / 1e6 AS lag_ms
  FROM same
  GROUP BY id
),
known AS (
  SELECT *, bool_or(gateway > 0 AND engine > 0) OVER () AS has_common FROM ids
)
SELECT
{% for check in of_ids %}
  {{ check.found }} AS found_{{ loop.index }}, {{ check.of }} AS of_{{ loop.index }}, {{ check.example }} AS example_{{ loop.index }}{{ "" if loop.last else "," }}
{% endfor %}
FROM known
-- step: merged
WITH findings AS (
{% for check in of_records %}
  SELECT {{ loop.index }} AS position, '{{ check.severity }}' AS severity, '{{ check.check | replace("'", "''") }}' AS "check", found_{{ loop.index }} AS found, of_{{ loop.index }} AS "of",
    example_{{ loop.index }} AS example, '{{ check.effect | replace("'", "''") }}' AS effect, '{{ check.fix | replace("'", "''") }}' AS fix FROM records
  UNION ALL
{% endfor %}
{% for check in of_ids %}
  SELECT {{ 100 + loop.index }}, '{{ check.severity }}', '{{ check.check | replace("'", "''") }}', CAST(found_{{ loop.index }} AS BIGINT), CAST(of_{{ loop.index }} AS BIGINT),
    example_{{ loop.index }}, '{{ check.effect | replace("'", "''") }}', '{{ check.fix | replace("'", "''") }}' FROM merged
  {{ "" if loop.last else "UNION ALL" }}
{% endfor %}
)
SELECT severity, "check", found, "of", CAST(found AS DOUBLE) / nullif("of", 0) AS share, example, effect, fix
FROM findings
WHERE found > 0
ORDER BY {{ order }}CASE severity WHEN 'error' THEN 1 WHEN 'warning' THEN 2 ELSE 3 END, share DESC, position
{{ limit }}
