-- title: Routing
-- question: What are the requests of each business line like, and how many could a smaller model take?
-- example: route --max-input 2048 --max-output 256 logs/
-- param: by dimensions business-line | what to group by
-- param: max_input integer 4096 0..1000000000 | a smaller model takes inputs of up to so many tokens
-- param: max_output integer 512 0..1000000000 | and answers of up to so many tokens
-- pivot: small_share
-- column: requests requests | all requests of the group
-- column: known requests | of them those that did not fail and whose input and output tokens are known
-- column: input_p* tokens | percentile of the input tokens of the known
-- column: output_p* tokens | percentile of the output tokens of the known
-- column: small requests | of the known, those that keep to both limits and were not cut at a limit of their own
-- column: small_share ratio | small / known
-- column: small_tokens tokens | their input and output tokens
-- column: token_share ratio | small_tokens / tokens of the known
-- total: requests known small small_tokens
WITH read AS (
  SELECT
    {{ keyed }}
    CASE WHEN failed IS NOT TRUE AND output_tokens IS NOT NULL THEN input_tokens END AS input,
    CASE WHEN failed IS NOT TRUE AND input_tokens IS NOT NULL THEN output_tokens END AS output,
    coalesce(normal_reason(finish_reason) = 'length', false) AS truncated
  FROM {{ logs }}
),
grouped AS (
  SELECT
    {{ keys }}
    count(*) AS requests, count(input) AS known,
    percentiles(input, [0.5, 0.95]) AS inputs, percentiles(output, [0.5, 0.95]) AS outputs,
    count(*) FILTER (WHERE input <= $max_input AND output <= $max_output AND NOT truncated) AS small,
    sum(CAST(input AS DECIMAL(38, 0)) + output) FILTER (WHERE input <= $max_input AND output <= $max_output AND NOT truncated) AS small_tokens,
    sum(CAST(input AS DECIMAL(38, 0)) + output) AS tokens
  FROM read
  {{ group_by }}
)
SELECT
  {{ labelled }}
  requests, known, inputs[1] AS input_p50, inputs[2] AS input_p95, outputs[1] AS output_p50, outputs[2] AS output_p95,
  small, CAST(small AS DOUBLE) / nullif(known, 0) AS small_share,
  TRY_CAST(CASE WHEN known > 0 THEN coalesce(small_tokens, 0) END AS BIGINT) AS small_tokens,
  CAST(CASE WHEN known > 0 THEN coalesce(small_tokens, 0) END AS DOUBLE) / nullif(tokens, 0) AS token_share
FROM grouped
ORDER BY {{ order }}requests
{{ limit }}
