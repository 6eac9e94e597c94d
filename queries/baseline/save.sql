-- title: Baseline
-- question: What is usual in a good period: which percentiles has each model, version and input length, and how far do its days differ?
-- example: baseline save --month 2025-05 --format json -o good.json logs/
-- example: baseline save --every 1h --since 2025-06-02 --until 2025-06-03 --format json -o good.json logs/
-- param: every span 1d | windows whose percentiles are compared with each other: a part of a day, or whole days
-- param: percentiles percentiles 50,95 | which percentiles to keep
-- param: min_count integer 30 1..1000000000 | a window with fewer measured requests does not count
-- column: model | the model that answered
-- column: version | its version
-- column: input_bucket | input tokens, lower edge included
-- column: metric | ttft, tpot or total, of requests that did not fail
-- column: percentile | of the requests of a window
-- column: window_ms ms | length of a window
-- column: windows windows | windows that have enough measured requests
-- column: measured requests | measured requests in them
-- column: value_ms ms | median of the windows' percentiles
-- column: low_ms ms | the lowest of them
-- column: high_ms ms | the highest of them
{% set metrics = ["ttft", "tpot", "total"] %}
WITH read AS (
  SELECT model_name, model_version, bucket(input_tokens, $input_edges) AS cell,
    local_window(timestamp, $every, 0, $zone) AS window_start,
    CASE WHEN failed IS NOT TRUE THEN ttft_ms END AS ttft, CASE WHEN failed IS NOT TRUE THEN tpot_ms END AS tpot,
    CASE WHEN failed IS NOT TRUE THEN total_latency_ms END AS total
  FROM {{ logs }}
  WHERE timestamp IS NOT NULL
),
grouped AS (
  SELECT model_name, model_version, cell, window_start,
{% for metric in metrics %}
    count({{ metric }}) AS {{ metric }}_measured, percentiles({{ metric }}, $percentiles) AS {{ metric }}_found{{ "" if loop.last else "," }}
{% endfor %}
  FROM read
  GROUP BY model_name, model_version, cell, window_start
)
SELECT model_name, model_version, cell, metric_number, metric, percentile_number, percentile,
  CASE metric_number{% for metric in metrics %} WHEN {{ loop.index }} THEN {{ metric }}_measured{% endfor %} END AS measured,
  CASE metric_number{% for metric in metrics %} WHEN {{ loop.index }} THEN {{ metric }}_found[percentile_number]{% endfor %} END AS value
FROM grouped
CROSS JOIN (VALUES{% for metric in metrics %} ({{ loop.index }}, '{{ metric }}'){{ "" if loop.last else "," }}{% endfor %}) AS asked (metric_number, metric)
CROSS JOIN (VALUES{% for percentile in percentiles %} ({{ loop.index }}, '{{ percentile.name }}'){{ "" if loop.last else "," }}{% endfor %}) AS wanted (percentile_number, percentile)
-- step: windows
SELECT model_name AS model, model_version AS version, bucket_label(cell, $input_edges) AS input_bucket, metric, percentile,
  $every AS window_ms, count(*) AS windows, sum(measured) AS measured, median(value) AS value_ms, min(value) AS low_ms, max(value) AS high_ms
FROM windows
WHERE measured >= $min_count
GROUP BY model_name, model_version, cell, metric_number, metric, percentile_number, percentile
ORDER BY {{ sort }}model_name NULLS LAST, model_version NULLS LAST, cell NULLS LAST, metric_number, percentile_number
{{ limit }}
