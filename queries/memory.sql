-- title: Memory
-- question: How much GPU memory do sequences of which length take, where does it jump, and how many are there of each?
-- example: memory logs/
-- example: memory --by gpu-pool,total-bucket logs/
-- example: memory --layers 80 --kv-heads 8 --head-dim 128 --where "model_name = 'qwen2.5-72b-instruct'" logs/
-- param: by dimensions model,total-bucket | what to group by: models have weights of their own; the last is the length
-- param: layers integer 1..100000 | layers of the model, to estimate its KV cache: needs kv-heads and head-dim too
-- param: kv_heads integer 1..100000 | key-value heads of a layer
-- param: head_dim integer 1..1000000 | dimension of a head
-- param: kv_bytes number 2 0..16 | bytes of a value in the cache: 2 for FP16 and BF16, 1 for FP8
-- pivot: memory_p95_mb
-- column: requests requests | all requests of the group
-- column: share ratio | their part of all requests
-- column: measured requests | of them with a logged memory peak
-- column: memory_p*_mb MB | percentile of the measured peaks
-- column: memory_max_mb MB | the highest peak
-- column: jump_mb MB | median here - median of the row before, of the same other dimensions
-- column: batch_p50 requests | median batch size
-- column: batch_p95 requests | 95th percentile of the batch size
-- column: mb_per_token MB/token | slope of the least-squares line of the peak over input + output tokens, within the group
-- column: correlation | Pearson's, of peak and tokens, within the group; null below 3 values
-- column: kv_p50_mb MB | estimated KV cache of the median sequence: 2 x layers x kv_heads x head_dim x kv_bytes x (input + output tokens) / 2^20, as GPU tools mean by MB; null unless all three are given
-- column: kv_p99_mb MB | the same of the 99th percentile of input + output tokens
-- total: requests measured
WITH read AS (
  SELECT
    {{ keyed }}
    gpu_mem_peak_mb AS peak, batch_size,
    CAST(input_tokens AS DOUBLE) + CAST(output_tokens AS DOUBLE) AS length,
    CASE WHEN gpu_mem_peak_mb IS NOT NULL THEN CAST(input_tokens AS DOUBLE) + CAST(output_tokens AS DOUBLE) END AS tokens
  FROM {{ logs }}
),
grouped AS (
  SELECT
    {{ keys }}
    count(*) AS requests,
    count(peak) AS measured,
    percentiles(peak, [0.5, 0.95, 0.99]) AS peaks,
    max(peak) AS highest,
    percentiles(batch_size, [0.5, 0.95]) AS batches,
    percentiles(length, [0.5, 0.99]) AS lengths,
    count(tokens) AS n,
    exact_sum(tokens) AS x, exact_sum(CASE WHEN tokens IS NOT NULL THEN peak END) AS y,
    exact_sum(tokens * tokens) AS xx, exact_sum(tokens * peak) AS xy, exact_sum(CASE WHEN tokens IS NOT NULL THEN peak * peak END) AS yy
  FROM read
  {{ group_by }}
)
SELECT
  {{ labelled }}
  requests, CAST(requests AS DOUBLE) / sum(requests) OVER () AS share, measured,
  peaks[1] AS memory_p50_mb, peaks[2] AS memory_p95_mb, peaks[3] AS memory_p99_mb, highest AS memory_max_mb,
{% if dimensions %}
{% set others = dimensions[:-1] | map(attribute="key") | join(", ") %}
  peaks[1] - lag(peaks[1]) OVER ({{ "PARTITION BY " ~ others if others }} ORDER BY {{ dimensions[-1].key }} NULLS LAST) AS jump_mb,
{% endif %}
  batches[1] AS batch_p50, batches[2] AS batch_p95,
  CASE WHEN n >= 3 THEN (n * xy - x * y) / nullif(n * xx - x * x, 0) END AS mb_per_token,
  CASE WHEN n >= 3 THEN (n * xy - x * y) / nullif(sqrt(greatest(n * xx - x * x, 0)) * sqrt(greatest(n * yy - y * y, 0)), 0) END AS correlation,
  2.0 * $layers * $kv_heads * $head_dim * $kv_bytes * lengths[1] / 1048576 AS kv_p50_mb,
  2.0 * $layers * $kv_heads * $head_dim * $kv_bytes * lengths[2] / 1048576 AS kv_p99_mb
FROM grouped
ORDER BY {{ order }}requests
{{ limit }}
