-- title: Audit
-- question: Can these logs be trusted: what is missing, doubled, impossible, or should not be in them?
-- example: audit logs/
-- example: audit --fail-on error --since 24h logs/
-- example: audit --keep 90d logs/
-- sampled: records
-- param: fail_on choice never warning error | exit with 3 where a finding is at least so severe
-- param: tolerance number 0.02 0..1 | how far stages may add up to another total, and parts to other tokens
-- param: keep span | how long records may be kept: older ones are found, by --until, or by the newest record where that is not given
-- column: severity | error: numbers are wrong; warning: they may be; info: good to know
-- column: check | what was found
-- column: found records | how many there are
-- column: of records | among how many that could be so
-- column: share ratio | found / of
-- place: example
-- column: example | one of them: its file and line, or its id
-- column: effect | what it does to reports
-- column: fix | what helps
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
  {"severity": "error", "check": "TTFT below queue + prefill", "of": "ttft_ms IS NOT NULL AND queue_wait_ms IS NOT NULL AND prefill_time_ms IS NOT NULL", "is": "ttft_ms * 1.1 + 5 < queue_wait_ms + prefill_time_ms",
   "effect": "TTFT leaves out the queue, or is in another unit", "fix": "look at the units with `inspect`, and at where the producer starts to count"},
  {"severity": "error", "check": "stages longer than the total", "of": "total_latency_ms > 0", "is": "(" ~ stages ~ ") > total_latency_ms * (1 + $tolerance) + 5",
   "effect": "stage shares are wrong", "fix": "look at the units and at what each stage measures"},
  {"severity": "error", "check": "no time with output", "of": "failed IS NOT TRUE AND output_tokens > 1 AND total_latency_ms IS NOT NULL", "is": "total_latency_ms = 0",
   "effect": "percentiles are too low", "fix": "a zero that stands for unknown: leave it out of the log"},
  {"severity": "error", "check": "no time until the first token", "of": "ttft_ms IS NOT NULL AND total_latency_ms > 0 AND output_tokens > 0", "is": "ttft_ms = 0",
   "effect": "TTFT is too low", "fix": "a zero that stands for unknown: leave it out of the log"},
  {"severity": "warning", "check": "TTFT is the whole total", "of": "ttft_ms > 0 AND total_latency_ms > 0 AND output_tokens > 1 AND response_cache_hit IS NOT TRUE", "is": "ttft_ms <= total_latency_ms AND total_latency_ms - ttft_ms < 0.01 * (output_tokens - 1)",
   "effect": "TTFT is too high, TPOT too low", "fix": "not streamed, or the first token's time was set at the end: leave it out of the log"},
  {"severity": "error", "check": "end before arrival", "of": "completed_at IS NOT NULL AND timestamp IS NOT NULL", "is": "completed_at < timestamp",
   "effect": "totals are wrong", "fix": "two clocks or zones: give the source its source_tz"},
  {"severity": "error", "check": "cached tokens above the input", "of": "cached_tokens IS NOT NULL AND input_tokens IS NOT NULL", "is": "cached_tokens > input_tokens",
   "effect": "hit ratios above 1", "fix": "the source leaves cached tokens out of its input: use a profile that adds them"},
  {"severity": "warning", "check": "total tokens are not input + output", "of": "total_tokens IS NOT NULL AND input_tokens IS NOT NULL AND output_tokens IS NOT NULL", "is": "abs(total_tokens - input_tokens - output_tokens) > total_tokens * $tolerance + 2",
   "effect": "a class of tokens is missed or counted twice", "fix": "find out whether cached or reasoning tokens are inside"},
  {"severity": "info", "check": "a success without output", "of": "failed = false AND output_tokens IS NOT NULL", "is": "output_tokens = 0",
   "effect": "counted as a success", "fix": "see `errors`: kind empty"},
  {"severity": "info", "check": "a success whose output is unknown", "of": "failed = false AND input_tokens IS NOT NULL", "is": "output_tokens IS NULL",
   "effect": "outside output buckets and TPOT", "fix": "log the usage of streams too (include_usage)"},
  {"severity": "info", "check": "sampled records", "of": "true", "is": "sample_weight <> 1 AND sample_weight > 0",
   "effect": "counts are of records, not of requests", "fix": "log the rate, and all errors"},
  {"severity": "warning", "check": "sampled at an unknown rate", "of": "true", "is": "sample_weight IS NULL OR sample_weight <= 0",
   "effect": "stands for nobody knows how many requests", "fix": "log the rate with every record that is sampled"},
  {"severity": "warning", "check": "control characters in a text", "of": "true", "is": "coalesce(features || id_features LIKE '%control%', false)",
   "effect": "breaks what reads the log line by line", "fix": "escape them where they are logged"},
  {"severity": "warning", "check": "direction marks in a text", "of": "true", "is": "coalesce(features || id_features LIKE '%direction%', false)",
   "effect": "ids look alike and are not equal", "fix": "strip them where they come in"},
  {"severity": "error", "check": "an e-mail address", "of": "true", "is": "coalesce(features || id_features LIKE '%e-mail%', false)",
   "effect": "personal data in the log and in every report by that column", "fix": "log an id in its place"},
  {"severity": "error", "check": "a key or token", "of": "true", "is": "coalesce(features || id_features LIKE '%key or token%', false)",
   "effect": "a secret in the log", "fix": "revoke it, and mask it where it is logged"},
  {"severity": "error", "check": "a phone number", "of": "true", "is": "coalesce(features LIKE '%phone%', false)",
   "effect": "personal data in the log and in every report by that column", "fix": "log an id in its place"},
  {"severity": "error", "check": "a card number", "of": "true", "is": "coalesce(features LIKE '%card%', false)",
   "effect": "personal data in the log and in every report by that column", "fix": "never log it; find out what sends it"},
  {"severity": "error", "check": "an identity number", "of": "true", "is": "coalesce(features LIKE '%identity%', false)",
   "effect": "personal data in the log and in every report by that column", "fix": "log an id in its place"},
] %}
{% set common = "bool_or(gateway > 0 AND engine > 0)" %}
{% set meant = "count(*) FILTER (WHERE size > 1 AND size = members) >= greatest(count(*) FILTER (WHERE size > members), 20 * count(*) FILTER (WHERE size < members OR NOT alike))" %}
{% set orphans = "coalesce(sum(members) FILTER (WHERE size > members AND alike), 0)" %}
{% set of_ids = [
  {"severity": "info", "check": "no token counts anywhere", "found": "CASE WHEN bool_or(counted) THEN 0 ELSE count(*) FILTER (WHERE NOT failed) END", "of": "count(*) FILTER (WHERE NOT failed)", "example": "min(CASE WHEN NOT failed THEN id END)",
   "effect": "no buckets, no tokens, no cost", "fix": "read the engine's log with it, or ask for usage"},
  {"severity": "warning", "check": "no token counts", "found": "CASE WHEN bool_or(counted) THEN count(*) FILTER (WHERE NOT counted AND NOT failed) ELSE 0 END", "of": "count(*) FILTER (WHERE NOT failed)", "example": "min(CASE WHEN NOT counted AND NOT failed THEN id END)",
   "effect": "outside buckets, and costs nobody anything", "fix": "ask for usage, in streams too (include_usage)"},
  {"severity": "error", "check": "duplicate records", "found": "coalesce(sum(doubles), 0)", "of": "sum(records)", "example": "min(CASE WHEN doubles > 0 THEN id END)",
   "effect": "counted twice in reports over records", "fix": "ask with --requests, and find out who sends the log twice"},
  {"severity": "warning", "check": "in the gateway's log, not in the engine's", "found": "CASE WHEN " ~ common ~ " THEN count(*) FILTER (WHERE gateway > 0 AND engine = 0 AND NOT refused) ELSE 0 END", "of": "count(*) FILTER (WHERE gateway > 0 AND NOT refused)", "example": "min(CASE WHEN gateway > 0 AND engine = 0 AND NOT refused THEN id END)",
   "effect": "no stages are known of them", "fix": "lost between gateway and engine, or its log is not complete"},
  {"severity": "warning", "check": "in the engine's log, not in the gateway's", "found": "CASE WHEN " ~ common ~ " THEN count(*) FILTER (WHERE engine > 0 AND gateway = 0) ELSE 0 END", "of": "count(*) FILTER (WHERE engine > 0)", "example": "min(CASE WHEN engine > 0 AND gateway = 0 THEN id END)",
   "effect": "nobody is known who sent them", "fix": "requests that go around the gateway, or ids that are made anew"},
  {"severity": "warning", "check": "no id is common to gateway and engine", "found": "CASE WHEN bool_or(gateway > 0) AND bool_or(engine > 0) AND NOT " ~ common ~ " THEN count(*) FILTER (WHERE gateway > 0 OR engine > 0) ELSE 0 END", "of": "count(*) FILTER (WHERE gateway > 0 OR engine > 0)", "example": "min(CASE WHEN gateway > 0 THEN id END)",
   "effect": "nothing can be merged", "fix": "pass the id on (x-request-id), give the profile its prefix, or --match asof"},
  {"severity": "error", "check": "the gateway's total is a small part of the engine's", "found": "count(*) FILTER (WHERE gateway_ms < 0.01 * engine_ms AND engine_ms > 100)", "of": "count(*) FILTER (WHERE gateway_ms IS NOT NULL AND engine_ms > 100)", "example": "min(CASE WHEN gateway_ms < 0.01 * engine_ms AND engine_ms > 100 THEN id END)",
   "effect": "seconds stand where ms should: percentiles are wrong", "fix": "look for one version or host that logs another unit, and --map it"},
  {"severity": "error", "check": "some of the engine's records are minutes off the gateway's", "found": "CASE WHEN abs(median(lag_ms)) < 60000 AND count(*) FILTER (WHERE abs(lag_ms) >= 300000) >= 10 THEN count(*) FILTER (WHERE abs(lag_ms) >= 300000) ELSE 0 END", "of": "count(lag_ms)", "example": "CAST(round(median(CASE WHEN abs(lag_ms) >= 300000 THEN lag_ms END) / 1000) AS VARCHAR) || ' s'",
   "effect": "time ranges and trends miss them", "fix": "the clock or zone of one pool or host: give its log a source of its own with its source_tz"},
  {"severity": "error", "check": "the engine's clock is off by a minute or more", "found": "CASE WHEN abs(median(lag_ms)) >= 60000 THEN count(lag_ms) ELSE 0 END", "of": "count(lag_ms)", "example": "CAST(round(median(lag_ms) / 1000) AS VARCHAR) || ' s'",
   "effect": "time ranges and trends miss its records", "fix": "a whole number of hours is a zone: give its source that source_tz; else --fix-skew"},
  {"severity": "warning", "check": "a retry of a request that is not there", "found": "count(*) FILTER (WHERE named_after_start > 0 AND records IS NULL)", "of": "count(*) FILTER (WHERE named_after_start > 0)", "example": "min(CASE WHEN named_after_start > 0 AND records IS NULL THEN id END)",
   "effect": "tries of one request are counted as several", "fix": "log the same id in both places, and the tries that broke off"},
  {"severity": "warning", "check": "older than may be kept", "found": "coalesce(sum(old), 0)", "of": "sum(records)", "example": "CAST(min(first_seen) AS VARCHAR)",
   "effect": "against the policy given by --keep", "fix": "delete them where logs are stored"},
] %}
{% set of_batches = [
  {"severity": "warning", "check": "members of a batch that is not complete", "found": "CASE WHEN " ~ meant ~ " THEN " ~ orphans ~ " ELSE 0 END", "of": "sum(members) FILTER (WHERE alike)", "example": "min(CASE WHEN size > members AND alike THEN batch_id END)",
   "effect": "requests of these batches are missing", "fix": "the log is not complete, or the rest has no batch id"},
  {"severity": "info", "check": "a batch size above the records of its batch", "found": "CASE WHEN " ~ meant ~ " THEN 0 ELSE " ~ orphans ~ " END", "of": "sum(members) FILTER (WHERE alike)", "example": "min(CASE WHEN size > members AND alike THEN batch_id END)",
   "effect": "none, where it counts what ran at once and not the batch", "fix": "find out which of the two is logged"},
] %}
{% set of_cells = [
  {"severity": "warning", "check": "durations a thousand times as long or short", "found": "coalesce(sum(far), 0)", "of": "sum(n)", "example": "min(CASE WHEN far > 0 THEN place END)",
   "effect": "seconds, ms or us are mixed up: percentiles are wrong", "fix": "look for one version or host that logs another unit, and --map it"},
] %}
{% set of_retries = [
  {"severity": "warning", "check": "a retry under a new id that names no other", "found": "CASE WHEN max(naming) > 0 THEN count(id) ELSE 0 END", "of": "max(failures)", "example": "min(id)",
   "effect": "one request counts as two, and its first try as a failure of its own", "fix": "keep the id, or log previous_request_id"},
  {"severity": "info", "check": "a request like one that failed just before", "found": "CASE WHEN max(naming) > 0 THEN 0 ELSE count(id) END", "of": "max(failures)", "example": "min(id)",
   "effect": "one request may count as two", "fix": "log previous_request_id, or read the log that has it too"},
] %}
{% set checks = {"records": of_records, "retries": of_retries, "merged": of_ids, "batches": of_batches, "cells": of_cells} %}
{% macro sums(checks) %}
{% for check in checks %}
  {{ check.found }} AS found_{{ loop.index }}, {{ check.of }} AS of_{{ loop.index }}, {{ check.example }} AS example_{{ loop.index }}{{ "" if loop.last else "," }}
{% endfor %}
{% endmacro %}
WITH read AS (
  SELECT *, source_file || coalesce(', byte ' || CAST(source_offset AS VARCHAR), '') AS place,
-- a long number in an id is an id
    coalesce(text_features(business_line, tenant, user_tag, app, tags, session_id, error_code), '') AS features, coalesce(text_features(request_id), '') AS id_features
  FROM {{ logs }}
)
SELECT
  min(timestamp) AS oldest, max(timestamp) AS newest,
{% for check in of_records %}
  count(*) FILTER (WHERE ({{ check.of }}) AND ({{ check.is }})) AS found_{{ loop.index }}, count(*) FILTER (WHERE {{ check.of }}) AS of_{{ loop.index }},
  min(CASE WHEN ({{ check.of }}) AND ({{ check.is }}) THEN place END) AS example_{{ loop.index }}{{ "" if loop.last else "," }}
{% endfor %}
FROM read
-- step: records
WITH limits AS (
-- what a retry in the first minute refers to may stand in the log before this one
  SELECT oldest + arrow_cast(60000000000, 'Duration(Nanosecond)') AS started,
    coalesce($until, newest) - arrow_cast(CAST($keep AS BIGINT) * 1000000, 'Duration(Nanosecond)') AS kept_since
  FROM records
),
read AS (
  SELECT *, coalesce(request_id, source_file || coalesce(', byte ' || CAST(source_offset AS VARCHAR), '')) AS own_id FROM {{ logs }}
),
named AS (
-- a record stands for its own id, and names the one that it retries
  SELECT *, unnest(CASE WHEN previous_request_id <> own_id THEN make_array(own_id, previous_request_id) ELSE make_array(own_id) END) AS id FROM read
),
same AS (
  SELECT id, id = own_id AS own, role, timestamp,
    count(*) AS n, bool_or(coalesce(http_status >= 400 OR failed, false)) AS failed,
    bool_or(input_tokens IS NOT NULL OR output_tokens IS NOT NULL) AS counted, max(CASE WHEN failed IS NOT TRUE THEN total_latency_ms END) AS took
  FROM named
  GROUP BY id, own, role, timestamp, attempt, model_name, input_tokens, output_tokens, total_latency_ms, status, error_code
),
ids AS (
  SELECT id, sum(n) FILTER (WHERE own) AS records, sum(n - 1) FILTER (WHERE own) AS doubles,
    bool_or(failed) FILTER (WHERE own) AS failed, bool_or(counted) FILTER (WHERE own) AS counted,
    coalesce(bool_or(failed AND role = 'gateway'), false) AS refused,
    count(*) FILTER (WHERE own AND role = 'gateway') AS gateway, count(*) FILTER (WHERE own AND role = 'engine') AS engine,
    (arrow_cast(min(timestamp) FILTER (WHERE own AND role = 'engine'), 'Int64')
      - arrow_cast(min(timestamp) FILTER (WHERE own AND role = 'gateway'), 'Int64')) / 1e6 AS lag_ms,
    max(CASE WHEN own AND role = 'gateway' THEN took END) AS gateway_ms, max(CASE WHEN own AND role = 'engine' THEN took END) AS engine_ms,
    count(*) FILTER (WHERE NOT own AND timestamp > started) AS named_after_start,
    sum(n) FILTER (WHERE own AND timestamp < kept_since) AS old, min(timestamp) FILTER (WHERE own) AS first_seen
  FROM limits CROSS JOIN same
  GROUP BY id
)
SELECT
{{ sums(of_ids) }}
FROM ids
-- step: merged
WITH named AS (
-- who asked what; without a hash of the prompt, the same number of tokens of the same model
  SELECT role, request_id, timestamp, failed, previous_request_id, coalesce(session_id, user_tag) AS who,
    coalesce(prompt_hash, model_name || ', ' || CAST(input_tokens AS VARCHAR)) AS what, coalesce(total_latency_ms, 0) AS took
  FROM {{ logs }}
  WHERE request_id IS NOT NULL
),
failures AS (
  SELECT role, request_id AS failed_id, timestamp AS failed_at, who, what, took FROM named WHERE failed AND what IS NOT NULL
),
counted AS (
  SELECT count(DISTINCT CASE WHEN failed AND what IS NOT NULL AND who IS NOT NULL THEN request_id END) AS failures, count(previous_request_id) AS naming FROM named
),
retried AS (
  SELECT DISTINCT request_id AS id
  FROM failures
  JOIN named ON named.who = failures.who AND named.what = failures.what AND (named.role IS NOT DISTINCT FROM failures.role)
  WHERE request_id <> failed_id AND previous_request_id IS NULL
    AND CAST(arrow_cast(timestamp, 'Int64') AS DOUBLE) - CAST(arrow_cast(failed_at, 'Int64') AS DOUBLE) BETWEEN 1000 AND (failures.took + 30000) * 1000000
)
SELECT
{{ sums(of_retries) }}
FROM counted
LEFT JOIN (SELECT id FROM retried EXCEPT SELECT request_id FROM {{ logs }} WHERE previous_request_id IS NOT NULL) AS fresh ON true
-- step: retries
WITH batched AS (
  SELECT batch_id, count(DISTINCT request_id) AS members, max(batch_size) AS size, max(batch_size) = min(batch_size) AS alike
  FROM {{ logs }}
  WHERE batch_id IS NOT NULL AND batch_size IS NOT NULL AND sample_weight = 1
  GROUP BY batch_id
)
SELECT
{{ sums(of_batches) }}
FROM batched
-- step: batches
WITH counted AS (
-- in tenths of a power of ten
  SELECT model_name, bucket(input_tokens, $input_edges) AS input_cell, bucket(output_tokens, $output_edges) AS output_cell,
    CAST(round(10 * log10(total_latency_ms)) AS BIGINT) AS size,
    count(*) AS n, min(source_file || coalesce(', byte ' || CAST(source_offset AS VARCHAR), '')) AS place
  FROM {{ logs }}
  WHERE total_latency_ms > 0 AND output_tokens > 0 AND failed IS NOT TRUE AND response_cache_hit IS NOT TRUE
  GROUP BY model_name, input_cell, output_cell, size
),
summed AS (
  SELECT *, sum(n) OVER (PARTITION BY model_name, input_cell, output_cell ORDER BY size) AS up_to,
    sum(n) OVER (PARTITION BY model_name, input_cell, output_cell) AS everything
  FROM counted
),
centred AS (
  SELECT *, abs(size - min(CASE WHEN 2 * up_to >= everything THEN size END) OVER (PARTITION BY model_name, input_cell, output_cell)) AS off
  FROM summed
),
parted AS (
-- two heaps, about 300 to 3000 times apart, the smaller one by three or more larger than what lies between
  SELECT *, CASE WHEN off BETWEEN 25 AND 35 AND sum(CASE WHEN off BETWEEN 25 AND 35 THEN n ELSE -n END) FILTER (WHERE off BETWEEN 12 AND 35)
    OVER (PARTITION BY model_name, input_cell, output_cell) > 2 THEN n ELSE 0 END AS far
  FROM centred
)
SELECT
{{ sums(of_cells) }}
FROM parted
-- step: cells
WITH findings AS (
{% for step, list in checks | items %}
{% set step_number = loop.index %}
{% for check in list %}
  {{ "UNION ALL" if step_number + loop.index > 2 }}
  SELECT {{ 100 * step_number + loop.index }} AS position, '{{ check.severity }}' AS severity, '{{ check.check | replace("'", "''") }}' AS "check",
    CAST(found_{{ loop.index }} AS BIGINT) AS found, CAST(of_{{ loop.index }} AS BIGINT) AS "of",
    example_{{ loop.index }} AS example, '{{ check.effect | replace("'", "''") }}' AS effect, '{{ check.fix | replace("'", "''") }}' AS fix FROM {{ step }}
{% endfor %}
{% endfor %}
)
SELECT severity, "check", found, "of", CAST(found AS DOUBLE) / nullif("of", 0) AS share, example, effect, fix
FROM findings
WHERE found > 0
ORDER BY {{ order }}CASE severity WHEN 'error' THEN 1 WHEN 'warning' THEN 2 ELSE 3 END, share DESC, position
{{ limit }}
