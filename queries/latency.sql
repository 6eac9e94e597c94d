-- title: Latency
-- question: How long do requests take, where does the time go, and which token lengths are slow?
-- example: latency --by input-bucket logs/*.ndjson
-- param: by dimensions | what to group by
-- param: metrics metrics total | which durations to measure
-- param: stages flag false | every stage with its share of the total time
-- param: percentiles percentiles 50,95,99 | which percentiles to show
-- param: nearest flag false | nearest rank instead of linear interpolation
-- param: min_count integer 0 | leave out rows with fewer measured requests
-- param: include_failed flag false | measure failed requests too
-- pivot: p95_ms
-- column: metric | the duration that the row measures
-- column: requests requests | all requests of the group
-- column: failed requests | of them failed
-- column: measured requests | of them measured: the duration is known and the request did not fail
-- column: mean_ms ms | mean of the measured
-- column: p*_ms ms | percentile of the measured
-- column: max_ms ms | the slowest of the measured
-- column: share ratio | this stage's part of the total time, over the requests whose total is known
-- total: requests failed measured
{% set known = ["auth_ms", "preprocess_ms", "queue_wait_ms", "prefill_time_ms", "decode_time_ms", "postprocess_ms", "network_ms"] %}
{% set all_stages = [
  {"name": "auth", "column": "auth_ms"},
  {"name": "preprocess", "column": "preprocess_ms"},
  {"name": "queue", "column": "queue_wait_ms"},
  {"name": "prefill", "column": "prefill_time_ms"},
  {"name": "decode", "column": "decode_time_ms"},
  {"name": "postprocess", "column": "postprocess_ms"},
  {"name": "network", "column": "network_ms"},
  {"name": "other", "column": "round(total_latency_ms - coalesce(" ~ known | join(", 0) - coalesce(") ~ ", 0), 6) + 0.0"},
  {"name": "total", "column": "total_latency_ms"},
] %}
{% set measures = all_stages if stages else metrics %}
{% set function = "percentiles_nearest" if nearest else "percentiles" %}
WITH measured AS (
  SELECT
    {{ keyed }}
{% for measure in measures %}
    {{ measure.column if include_failed else "CASE WHEN failed IS NOT TRUE THEN " ~ measure.column ~ " END" }} AS {{ measure.name }},
{% endfor %}
    failed
  FROM {{ logs }}
),
grouped AS (
  SELECT
    {{ keys }}
{% for measure in measures %}
    count({{ measure.name }}) AS {{ measure.name }}_measured,
    exact_mean({{ measure.name }}) AS {{ measure.name }}_mean,
    {{ function }}({{ measure.name }}, $percentiles) AS {{ measure.name }}_percentiles,
    max({{ measure.name }}) AS {{ measure.name }}_max,
{% if stages %}
    exact_sum(CASE WHEN total IS NOT NULL THEN {{ measure.name }} END) / exact_sum(total) AS {{ measure.name }}_share,
{% endif %}
{% endfor %}
    count(*) AS requests,
    count(*) FILTER (WHERE failed) AS failed
  FROM measured
  {{ group_by }}
)
{% if measures | length == 1 %}
SELECT
  {{ labelled }}
{% for measure in measures %}
  requests, failed, {{ measure.name }}_measured AS measured, {{ measure.name }}_mean AS mean_ms,
{% for percentile in percentiles %}
  {{ measure.name }}_percentiles[{{ loop.index }}] AS {{ percentile.name }}_ms,
{% endfor %}
  {{ measure.name }}_max AS max_ms
FROM grouped
WHERE {{ measure.name }}_measured >= $min_count
{% endfor %}
ORDER BY {{ order }}requests
{% else %}
SELECT
  {{ labelled }}
  metric, requests, failed, measured, mean_ms,
{% for percentile in percentiles %}
  percentiles[{{ loop.index }}] AS {{ percentile.name }}_ms,
{% endfor %}
  max_ms{{ ", share" if stages }}
FROM (
  SELECT
-- The engine takes it that a grouping column decides all others, even across the join, and would drop `position` from the
-- order of the rows; of an expression it does not.
{% for dimension in dimensions %}
    CASE WHEN position > 0 THEN {{ dimension.key }} END AS {{ dimension.key }},
{% endfor %}
{% for field in ["measured", "mean", "percentiles", "max"] + (["share"] if stages else []) %}
    CASE position{% for measure in measures %} WHEN {{ loop.index }} THEN {{ measure.name }}_{{ field }}{% endfor %} END
      AS {{ field }}{{ "_ms" if field in ["mean", "max"] }},
{% endfor %}
{% if stages %}
    sum(CASE position{% for measure in measures %} WHEN {{ loop.index }} THEN {{ measure.name }}_measured{% endfor %} END)
      OVER (PARTITION BY position) AS measured_anywhere,
{% endif %}
    position, metric, requests, failed
  FROM grouped
  CROSS JOIN (VALUES{% for measure in measures %} ({{ loop.index }}, '{{ measure.name }}'){{ "" if loop.last else "," }}{% endfor %}) AS metrics (position, metric)
)
WHERE measured >= $min_count{{ " AND (measured_anywhere > 0 OR metric = 'total')" if stages }}
ORDER BY {{ order }}position
{% endif %}
{{ limit }}
