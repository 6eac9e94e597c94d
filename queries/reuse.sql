-- title: Reuse
-- question: How many prompts are exact or near repeats, what would a cache of answers have saved, and how much is spent on long prompts?
-- example: reuse --ttl 10m logs/
-- example: reuse --requests --by business-line logs/
-- example: reuse --column simhash=meta.simhash --similar simhash logs/
-- sampled: refused
-- param: by dimensions | what to group by
-- param: ttl span 1h | how long such a cache keeps an answer
-- param: loop span 10s | a user or session that repeats a prompt within this is taken for a loop
-- param: similar dimensions | a column that is equal for similar prompts, as from --column; without it the logged block hashes tell
-- param: near number 0.9 0..1 | a prompt is near an earlier one that has so much of its blocks, from the front on
-- param: long_input integer 4096 1..1000000000 | input tokens from which on a prompt is long, and worth shortening
-- pivot: repeat_share
-- column: requests requests | all requests of the group
-- column: hashed requests | of them those with a prompt hash: the others are in no share
-- column: prompts | different prompts among them, by hash and model
-- column: repeats requests | hashed requests whose prompt came before, to the same model
-- column: repeat_share ratio | repeats / hashed
-- column: cacheable requests | repeats within the TTL of the request with that prompt just before, if that did not fail
-- column: cacheable_share ratio | cacheable / hashed
-- column: saved_input_tokens tokens | input tokens of the cacheable; null when none is known
-- column: saved_output_tokens tokens | output tokens of the cacheable; null when none is known
-- column: saved_prefill_ms ms | prefill time of the cacheable; null when none is known
-- column: priced requests | cacheable with a logged cost
-- column: saved_cost | their cost, before that of the cache itself and of answers that no longer fit, which no log tells; null when none is known, or currencies differ
-- column: currency | the currency that all the priced name; null when none does
-- column: comparable requests | those that did not fail and have a time, and the column of --similar, else block hashes
-- column: near_repeats requests | comparable ones that are no exact repeat, but whose key, or so much of their front, the same model had within the TTL; one may need another answer
-- column: near_share ratio | near repeats / comparable
-- column: loops requests | repeats by the same session, or the same user, within the loop time
-- column: differing requests | repeats whose input tokens differ by more than a tenth from those of the request before: equal hashes of unlike prompts, or counts that are off
-- column: long requests | requests whose prompts are long: a shorter prompt promises most where these are many
-- column: long_known requests | of the long, those that say how much came from the prefix cache
-- column: long_tokens tokens | their input tokens that did not come from it; null when none is known
-- column: long_prefill_ms ms | prefill time of the long; null when none is known
-- total: requests hashed repeats cacheable priced comparable near_repeats loops differing long long_known
WITH read AS (
  SELECT
    {{ keyed }}
    {{ "CAST(" ~ similar[0].value ~ " AS VARCHAR)" if similar else "prefix_hashes" }} AS likeness,
    prompt_hash, model_name, timestamp, failed, source_file, source_offset
  FROM {{ logs }}
  WHERE timestamp IS NOT NULL
),
alike AS (
-- the answer of a request that failed helps nobody
  SELECT *, CASE WHEN failed THEN NULL ELSE likeness END AS compared,
    prompt_hash IS NOT NULL AND row_number() OVER (PARTITION BY prompt_hash, model_name ORDER BY timestamp, source_file, source_offset) > 1 AS repeats
  FROM read
  WHERE likeness IS NOT NULL
),
found AS (
{% if similar %}
  SELECT *, compared IS NOT NULL AS comparable,
    arrow_cast(timestamp, 'Int64') - arrow_cast(lag(timestamp)
      OVER (PARTITION BY compared, model_name ORDER BY timestamp, source_file, source_offset), 'Int64') BETWEEN 0 AND $ttl * 1000000 AS near
  FROM alike
{% else %}
  SELECT *, replay[1] > 0 AS comparable, replay[2] > 0 AND CAST(replay[2] AS DOUBLE) / replay[1] >= $near AS near
  FROM (SELECT *, replay_prefixes(compared, timestamp, NULL, $ttl)
    OVER (PARTITION BY model_name ORDER BY timestamp, source_file, source_offset) AS replay FROM alike)
{% endif %}
)
SELECT {{ keys }}count(*) AS comparable, count(*) FILTER (WHERE near AND NOT repeats) AS near_repeats
FROM found
WHERE comparable
{{ group_by }}
-- step: near
WITH read AS (
  SELECT
    {{ keyed }}
    prompt_hash, model_name, timestamp, failed, input_tokens, output_tokens, prefill_time_ms, cost_logged, upper(currency) AS currency,
    coalesce(cached_tokens, CASE WHEN cache_hit = false THEN 0 END) AS cached_tokens,
    coalesce(session_id, user_tag) AS who,
    lag(timestamp) OVER earlier AS before, lag(failed) OVER earlier AS failed_before, lag(input_tokens) OVER earlier AS input_before,
    lag(coalesce(session_id, user_tag)) OVER earlier AS who_before,
    row_number() OVER earlier AS use
  FROM {{ logs }}
  WINDOW earlier AS (PARTITION BY prompt_hash, model_name ORDER BY timestamp, source_file, source_offset)
),
judged AS (
  SELECT *,
    prompt_hash IS NOT NULL AND use > 1 AS repeats,
    prompt_hash IS NOT NULL AND use > 1 AND failed_before IS NOT TRUE
      AND arrow_cast(timestamp, 'Int64') - arrow_cast(before, 'Int64') BETWEEN 0 AND $ttl * 1000000 AS cacheable,
    prompt_hash IS NOT NULL AND use > 1 AND who = who_before
      AND arrow_cast(timestamp, 'Int64') - arrow_cast(before, 'Int64') BETWEEN 0 AND $loop * 1000000 AS loops,
    prompt_hash IS NOT NULL AND use > 1 AND 10 * abs(CAST(input_tokens AS DOUBLE) - input_before) > input_before AS differing,
    input_tokens >= $long_input AS long,
    CASE WHEN input_tokens >= $long_input AND cached_tokens IS NOT NULL THEN greatest(input_tokens - cached_tokens, 0) END AS uncached
  FROM read
),
grouped AS (
  SELECT
    {{ keys }}
    count(*) AS requests, count(prompt_hash) AS hashed, count(*) FILTER (WHERE prompt_hash IS NOT NULL AND use = 1) AS prompts,
    count(*) FILTER (WHERE repeats) AS repeats, count(*) FILTER (WHERE cacheable) AS cacheable,
    TRY_CAST(sum(CAST(input_tokens AS DECIMAL(38, 0))) FILTER (WHERE cacheable) AS BIGINT) AS saved_input_tokens,
    TRY_CAST(sum(CAST(output_tokens AS DECIMAL(38, 0))) FILTER (WHERE cacheable) AS BIGINT) AS saved_output_tokens,
    exact_sum(CASE WHEN cacheable THEN prefill_time_ms END) AS saved_prefill_ms,
    count(cost_logged) FILTER (WHERE cacheable) AS priced,
    TRY_CAST(sum(CAST(cost_logged AS DECIMAL(76, 12))) FILTER (WHERE cacheable) AS DECIMAL(38, 12)) AS cost,
    count(currency) FILTER (WHERE cacheable AND cost_logged IS NOT NULL) AS named,
    min(currency) FILTER (WHERE cacheable AND cost_logged IS NOT NULL) AS first_currency,
    max(currency) FILTER (WHERE cacheable AND cost_logged IS NOT NULL) AS last_currency,
    count(*) FILTER (WHERE loops) AS loops, count(*) FILTER (WHERE differing) AS differing,
    count(*) FILTER (WHERE long) AS long, count(uncached) AS long_known,
    TRY_CAST(sum(CAST(uncached AS DECIMAL(38, 0))) AS BIGINT) AS long_tokens,
    exact_sum(CASE WHEN long THEN prefill_time_ms END) AS long_prefill_ms
  FROM judged
  {{ group_by }}
)
SELECT
  {{ labelled }}
  requests, hashed, prompts, repeats, CAST(repeats AS DOUBLE) / nullif(hashed, 0) AS repeat_share,
  cacheable, CAST(cacheable AS DOUBLE) / nullif(hashed, 0) AS cacheable_share,
  saved_input_tokens, saved_output_tokens, saved_prefill_ms,
  priced, CASE WHEN named = 0 OR named = priced AND first_currency = last_currency THEN cost END AS saved_cost,
  CASE WHEN named = priced AND first_currency = last_currency THEN first_currency END AS currency,
  coalesce(comparable, 0) AS comparable, coalesce(near_repeats, 0) AS near_repeats, CAST(near_repeats AS DOUBLE) / nullif(comparable, 0) AS near_share,
  loops, differing, long, long_known, long_tokens, long_prefill_ms
FROM (SELECT grouped.*, comparable, near_repeats FROM grouped
{% if dimensions %}
  LEFT JOIN near ON {{ same_keys("grouped", "near") }})
{% else %}
  CROSS JOIN near)
{% endif %}
ORDER BY {{ order }}requests
{{ limit }}
