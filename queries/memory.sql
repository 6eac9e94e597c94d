-- title: Memory
-- question: How much GPU memory do sequences of which length take, where does it jump, and how many are there of each?
-- example: memory logs/
-- example: memory --by gpu-pool,total-bucket logs/
-- param: by dimensions model,total-bucket | what to group by: models have weights of their own; the last is the length
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
-- total: requests measured
WITH read AS (
  SELECT
    {{ keyed }}
    gpu_mem_peak_mb AS peak, batch_size,
    CASE WHEN gpu_mem_peak_mb IS NOT NULL THEN CAST(input_tokens + output_tokens AS DOUBLE) END AS tokens
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
  CASE WHEN n >= 3 THEN (n * xy - x * y) / nullif(sqrt(greatest(n * xx - x * x, 0)) * sqrt(greatest(n * yy - y * y, 0)), 0) END AS correlation
FROM grouped
ORDER BY {{ order }}requests
{{ limit }}
