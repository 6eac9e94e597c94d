-- title: Workload
-- question: What does the traffic look like: how many requests, how long are their inputs and outputs?
-- example: workload --by input-bucket logs/*.ndjson
-- example: workload --by business-line --month 2025-06 --tz Asia/Shanghai --format csv logs/
-- param: by dimensions | what to group by
-- pivot: requests
-- column: requests requests | all requests of the group
-- column: share ratio | their part of all requests
-- column: input_tokens tokens | sum of the input tokens, cached ones included; null when none is known
-- column: output_tokens tokens | sum of the output tokens; null when none is known
-- column: input_p* tokens | percentile of the input tokens
-- column: output_p* tokens | percentile of the output tokens
-- total: requests input_tokens output_tokens
WITH counted AS (
  SELECT
    {{ keyed }}
    input_tokens, output_tokens
  FROM {{ logs }}
),
grouped AS (
  SELECT
    {{ keys }}
    count(*) AS requests,
-- summed in 38 digits: one absurd count must not turn a sum around; a sum beyond 64 bits is unknown
    TRY_CAST(sum(CAST(input_tokens AS DECIMAL(38, 0))) AS BIGINT) AS input_tokens,
    TRY_CAST(sum(CAST(output_tokens AS DECIMAL(38, 0))) AS BIGINT) AS output_tokens,
    percentiles(input_tokens, [0.5, 0.95, 0.99]) AS input,
    percentiles(output_tokens, [0.5, 0.95, 0.99]) AS output
  FROM counted
  {{ group_by }}
)
SELECT
  {{ labelled }}
  requests,
  CAST(requests AS DOUBLE) / sum(requests) OVER () AS share,
  input_tokens, output_tokens,
  input[1] AS input_p50, input[2] AS input_p95, input[3] AS input_p99,
  output[1] AS output_p50, output[2] AS output_p95, output[3] AS output_p99
FROM grouped
ORDER BY {{ order }}requests
{{ limit }}
