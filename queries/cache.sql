-- title: Cache
-- question: How much of the prompts came from the prefix cache, and what did that save?
-- example: cache --by model logs/
-- example: cache --by cached-bucket logs/
-- example: cache --what-if blocks=100000,ttl=10m,block=512 trace.jsonl
-- param: by dimensions | what to group by
-- param: block_size integer 16 1..1000000000 | tokens of a cache block: shorter prompts cannot hit
-- param: what_if replay | replay the logged block hashes through a cache: infinite, or ttl=10m,blocks=N,block=TOKENS
-- pivot: token_hit_ratio
-- column: requests requests | all requests of the group
-- column: known requests | of them those that say whether they hit: the others are in no ratio
-- column: hits requests | of the known, those that say so, or have cached tokens
-- column: request_hit_ratio ratio | hits / known
-- column: token_hit_ratio ratio | cached tokens / input tokens, over the requests that have both
-- column: mean_hit_ratio ratio | mean of cached / input tokens of each such request: short prompts weigh as much as long ones
-- column: block_hit_ratio ratio | reused blocks / blocks of the prompts
-- column: cached_tokens tokens | prompt tokens that came from the cache
-- column: saved_prefill_ms ms | cached tokens x prefill time per token of misses of the same model and input bucket; null where no miss was measured
-- column: unvalued_tokens tokens | cached tokens that saved_prefill_ms leaves out, as no miss of their model and input bucket was measured
-- column: hits_not_faster requests | hits in groups of one model and input bucket whose prefill took at least as long per prompt token as that of misses
-- column: misses_below_block requests | misses with fewer input tokens than a block: they could not hit
-- column: replayed requests | requests whose block hashes are logged
-- column: blocks blocks | blocks of their prompts
-- column: reused_blocks blocks | of them held by the cache from the front of the prompt on
-- column: reused_tokens tokens | tokens of these blocks, the last one of a prompt at its real length; null where the size of a block is unknown
-- column: block_tokens tokens | tokens of a block, as given or as all prompts agree on
-- total: requests known hits cached_tokens unvalued_tokens hits_not_faster misses_below_block replayed blocks reused_blocks reused_tokens
{% if what_if %}
WITH replayed AS (
  SELECT
    {{ keyed }}
    input_tokens,
    replay_prefixes(prefix_hashes, timestamp, $what_if_blocks, $what_if_ttl_ms)
      OVER (PARTITION BY model_name ORDER BY timestamp, source_file, source_offset) AS replay
  FROM {{ logs }}
),
sized AS (
-- the size that every prompt agrees on: n tokens in k blocks are more than k - 1 blocks hold, and no more than k hold
  SELECT *, replay[1] AS blocks, replay[2] AS reused,
    coalesce($what_if_block, CASE
      WHEN power(2, ceil(log2(max(CAST(input_tokens AS DOUBLE) / replay[1]) OVER ())))
        < min(CASE WHEN replay[1] > 1 THEN CAST(input_tokens AS DOUBLE) / (replay[1] - 1) ELSE 'Infinity' END) OVER ()
      THEN CAST(power(2, ceil(log2(max(CAST(input_tokens AS DOUBLE) / replay[1]) OVER ()))) AS BIGINT) END) AS block_tokens
  FROM replayed
),
counted AS (
  SELECT *, CASE WHEN reused * block_tokens < input_tokens THEN reused * block_tokens
    WHEN reused * block_tokens >= input_tokens THEN input_tokens END AS reused_tokens FROM sized
),
grouped AS (
  SELECT
    {{ keys }}
    count(*) AS requests,
    count(reused) AS replayed,
    sum(blocks) AS blocks,
    sum(reused) AS reused_blocks,
    count(*) FILTER (WHERE reused > 0) AS hits,
    sum(CAST(reused_tokens AS DECIMAL(38, 0))) AS reused_tokens,
    sum(CAST(input_tokens AS DECIMAL(38, 0))) FILTER (WHERE reused_tokens IS NOT NULL) AS input_tokens,
    exact_mean(CAST(reused_tokens AS DOUBLE) / nullif(input_tokens, 0)) AS mean_hit_ratio,
    max(block_tokens) AS block_tokens
  FROM counted
  {{ group_by }}
)
SELECT
  {{ labelled }}
  requests, replayed, blocks, reused_blocks,
  CAST(reused_blocks AS DOUBLE) / nullif(blocks, 0) AS block_hit_ratio,
  CAST(reused_tokens AS DOUBLE) / nullif(input_tokens, 0) AS token_hit_ratio,
  CAST(hits AS DOUBLE) / nullif(replayed, 0) AS request_hit_ratio,
  mean_hit_ratio, TRY_CAST(reused_tokens AS BIGINT) AS reused_tokens, block_tokens
FROM grouped
{% else %}
WITH read AS (
  SELECT
    {{ keyed }}
    model_name, bucket(input_tokens, $input_edges) AS cell,
    coalesce(cache_hit, cached_tokens > 0) AS hit,
    CASE WHEN cached_tokens IS NOT NULL THEN input_tokens END AS input_tokens,
    CASE WHEN input_tokens IS NOT NULL THEN cached_tokens END AS cached_tokens,
    input_tokens AS any_input,
    CASE WHEN input_tokens > 0 THEN prefill_time_ms END AS prefill
  FROM {{ logs }}
),
cells AS (
  SELECT
    {{ keys }}
    model_name, cell,
    count(*) AS requests,
    count(hit) AS known,
    count(*) FILTER (WHERE hit) AS hits,
    sum(CAST(input_tokens AS DECIMAL(38, 0))) AS input_tokens,
    sum(CAST(cached_tokens AS DECIMAL(38, 0))) AS cached_tokens,
    exact_sum(CAST(cached_tokens AS DOUBLE) / nullif(input_tokens, 0)) AS ratios,
    count(CAST(cached_tokens AS DOUBLE) / nullif(input_tokens, 0)) AS ratio_count,
    min(CAST(cached_tokens AS DOUBLE) / nullif(input_tokens, 0)) AS least_ratio, max(CAST(cached_tokens AS DOUBLE) / nullif(input_tokens, 0)) AS largest_ratio,
    exact_sum(CASE WHEN NOT hit THEN prefill END) AS miss_prefill,
    sum(CAST(CASE WHEN NOT hit AND prefill IS NOT NULL THEN any_input END AS DOUBLE)) AS miss_tokens,
    exact_sum(CASE WHEN hit THEN prefill END) AS hit_prefill,
    sum(CAST(CASE WHEN hit AND prefill IS NOT NULL THEN any_input END AS DOUBLE)) AS hit_tokens,
    count(*) FILTER (WHERE hit = false AND any_input < $block_size) AS misses_below_block
  FROM read
  GROUP BY {{ keys }}model_name, cell
),
measured AS (
  SELECT *,
    exact_sum(miss_prefill) OVER (PARTITION BY model_name, cell)
      / nullif(sum(miss_tokens) OVER (PARTITION BY model_name, cell), 0) AS ms_per_missed_token
  FROM cells
),
grouped AS (
  SELECT
    {{ keys }}
    sum(requests) AS requests, sum(known) AS known, sum(hits) AS hits,
    sum(input_tokens) AS input_tokens, sum(cached_tokens) AS cached_tokens,
-- rounding must not lead outside what was there
    least(greatest(exact_sum(ratios) / nullif(sum(ratio_count), 0), min(least_ratio)), max(largest_ratio)) AS mean_hit_ratio,
    exact_sum(CASE WHEN cached_tokens = 0 THEN 0.0 ELSE CAST(cached_tokens AS DOUBLE) * ms_per_missed_token END) AS saved_prefill_ms,
    sum(CASE WHEN ms_per_missed_token IS NULL THEN cached_tokens ELSE cached_tokens * 0 END) AS unvalued_tokens,
    sum(CASE WHEN hit_prefill / nullif(hit_tokens, 0) >= ms_per_missed_token THEN hits ELSE 0 END) AS hits_not_faster,
    sum(misses_below_block) AS misses_below_block
  FROM measured
  {{ group_by }}
)
SELECT
  {{ labelled }}
  requests, known, hits,
  CAST(hits AS DOUBLE) / nullif(known, 0) AS request_hit_ratio,
  CAST(cached_tokens AS DOUBLE) / nullif(input_tokens, 0) AS token_hit_ratio,
  mean_hit_ratio, TRY_CAST(cached_tokens AS BIGINT) AS cached_tokens, saved_prefill_ms, TRY_CAST(unvalued_tokens AS BIGINT) AS unvalued_tokens, hits_not_faster, misses_below_block
FROM grouped
{% endif %}
ORDER BY {{ order }}requests
{{ limit }}
