-- title: Slow requests
-- question: Which requests were slowest, in which stage, and how far from others of their model and length?
-- example: slow --top 20 --since 24h logs/
-- example: slow --metric ttft --where "model_name = 'demo'" logs/
-- param: metric metric total | the duration to rank by
-- param: include_failed flag false | rank failed requests too
-- column: request_id | the request
-- column: timestamp | its arrival
-- column: model | the model that answered
-- column: input_bucket | its input tokens, lower edge included
-- column: input_tokens tokens | prompt tokens
-- column: output_tokens tokens | generated tokens
-- column: *_ms ms | the duration that is ranked by
-- column: stage | the stage that took longest
-- column: stage_share ratio | its part of the total time
-- column: median_ms ms | median of the requests of the same model and input bucket
-- column: times_median | the request's duration / median_ms
-- column: pattern | against medians of model and bucket: first token (TTFT above 3x, TPOT below 1.5x), decoding (the reverse), overload (both above 3x), long answer (output above 3x)
WITH cells AS (
  SELECT model_name, bucket(input_tokens, $input_edges) AS cell,
    median({{ metric[0].column }}) AS median_ms,
    median(ttft_ms) AS median_ttft, median(tpot_ms) AS median_tpot, median(output_tokens) AS median_output
  FROM {{ logs }}
  WHERE failed IS NOT TRUE
  GROUP BY model_name, cell
),
slowest AS (
  SELECT request_id, timestamp, model_name, bucket(input_tokens, $input_edges) AS cell, input_tokens, output_tokens,
    {{ metric[0].column }} AS measure, total_latency_ms, ttft_ms, tpot_ms, source_file, source_offset,
    auth_ms, preprocess_ms, queue_wait_ms, prefill_time_ms, decode_time_ms, postprocess_ms, network_ms,
    greatest(auth_ms, preprocess_ms, queue_wait_ms, prefill_time_ms, decode_time_ms, postprocess_ms, network_ms) AS longest
  FROM {{ logs }}
  WHERE {{ metric[0].column }} IS NOT NULL{{ " AND failed IS NOT TRUE" if not include_failed }}
  ORDER BY measure DESC, timestamp, request_id, source_file, source_offset
  {{ limit if limit else "LIMIT 10" }}
)
SELECT request_id, timestamp, slowest.model_name AS model, bucket_label(slowest.cell, $input_edges) AS input_bucket,
  input_tokens, output_tokens, measure AS {{ metric[0].name }}_ms,
  CASE longest WHEN queue_wait_ms THEN 'queue' WHEN prefill_time_ms THEN 'prefill' WHEN decode_time_ms THEN 'decode'
    WHEN auth_ms THEN 'auth' WHEN preprocess_ms THEN 'preprocess' WHEN postprocess_ms THEN 'postprocess'
    WHEN network_ms THEN 'network' END AS stage,
  longest / nullif(total_latency_ms, 0) AS stage_share,
  median_ms, measure / nullif(median_ms, 0) AS times_median,
  CASE
    WHEN ttft_ms > 3 * median_ttft AND tpot_ms > 3 * median_tpot THEN 'overload'
    WHEN ttft_ms > 3 * median_ttft AND tpot_ms < 1.5 * median_tpot THEN 'first token'
    WHEN tpot_ms > 3 * median_tpot AND ttft_ms < 1.5 * median_ttft THEN 'decoding'
    WHEN output_tokens > 3 * median_output THEN 'long answer'
  END AS pattern
FROM slowest
LEFT JOIN cells ON (slowest.model_name IS NOT DISTINCT FROM cells.model_name) AND (slowest.cell IS NOT DISTINCT FROM cells.cell)
ORDER BY {{ order }}measure DESC, timestamp, request_id, source_file, source_offset
