-- title: Reuse
-- question: How many prompts are exact repeats, and what would a cache of answers have saved?
-- example: reuse --ttl 10m logs/
-- example: reuse --requests --by business-line logs/
-- param: by dimensions | what to group by
-- param: ttl span 1h | how long such a cache keeps an answer
-- param: loop span 10s | a user or session that repeats a prompt within this is taken for a loop
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
-- column: loops requests | repeats by the same session, or the same user, within the loop time
-- column: differing requests | repeats whose input tokens differ by more than a tenth from those of the request before: equal hashes of unlike prompts, or counts that are off
-- total: requests hashed repeats cacheable loops differing
WITH read AS (
  SELECT
    {{ keyed }}
    prompt_hash, model_name, timestamp, failed, input_tokens, output_tokens, prefill_time_ms,
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
      AND (arrow_cast(timestamp, 'Int64') - arrow_cast(before, 'Int64')) <= $ttl * 1000000 AS cacheable,
    prompt_hash IS NOT NULL AND use > 1 AND who = who_before
      AND (arrow_cast(timestamp, 'Int64') - arrow_cast(before, 'Int64')) <= $loop * 1000000 AS loops,
    prompt_hash IS NOT NULL AND use > 1 AND 10 * abs(input_tokens - input_before) > input_before AS differing
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
    count(*) FILTER (WHERE loops) AS loops, count(*) FILTER (WHERE differing) AS differing
  FROM judged
  {{ group_by }}
)
SELECT
  {{ labelled }}
  requests, hashed, prompts, repeats, CAST(repeats AS DOUBLE) / nullif(hashed, 0) AS repeat_share,
  cacheable, CAST(cacheable AS DOUBLE) / nullif(hashed, 0) AS cacheable_share,
  saved_input_tokens, saved_output_tokens, saved_prefill_ms, loops, differing
FROM grouped
ORDER BY {{ order }}requests
{{ limit }}
