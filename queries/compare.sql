-- title: Comparison
-- question: Is B slower than A, on which lengths, and is that more than chance?
-- example: compare --split version --a v2.3.0 --b v2.4.0 logs/
-- example: compare --split day --a 2025-06-02 --b 2025-06-09 --metric ttft logs/
-- example: compare --split source_file --a old.csv --b new.csv old.csv new.csv
-- example: compare --a "where stream" --b "where NOT stream" --metric tpot logs/
-- sampled: refused
-- param: by dimensions input-bucket | the parts that are compared with each other
-- param: split dimensions version | what tells A from B: a dimension or a column
-- param: a side ! | its value on side A, or `where` and a condition on records
-- param: b side ! | its value on side B, or `where` and a condition on records
-- param: metric metric total | the duration to compare
-- param: percentiles percentiles 50,95 | which percentiles to compare
-- param: confidence number 0.99 0.5..0.9999 | of the bounds, by 2000 bootstrap draws
-- param: tolerance number 0.05 0..10 | changes within this are no difference
-- param: detectable number 0.2 0..10 | nor is what chance explains, where the bounds rule out a change of this size; where they do not, it is inconclusive
-- param: min_count integer 30 0..1000000000 | fewer measured requests on a side are inconclusive
-- param: seed integer 1 | of the draws: the same seed gives the same bounds
-- column: scope | one part, or all with the same mix of parts and output buckets on both sides
-- column: percentile | of the measured requests; over all the geometric mean of the cells', weighted by the requests of both sides
-- column: verdict | worse, better, no difference, or inconclusive, on side B
-- column: change ratio | B / A - 1
-- column: low ratio | lower bound of the change
-- column: high ratio | upper bound of the change
-- column: a_ms ms | the percentile on side A, over all as `percentile` says
-- column: b_ms ms | the percentile on side B, over all as `percentile` says
-- column: measured_a requests | requests of A that did not fail and have the duration
-- column: measured_b requests | requests of B that did not fail and have the duration
-- column: error_rate_a ratio | failed / requests whose outcome is known, on side A
-- column: error_rate_b ratio | failed / requests whose outcome is known, on side B
-- column: truncated_a ratio | answers cut at a limit / those with a finish reason, on side A
-- column: truncated_b ratio | answers cut at a limit / those with a finish reason, on side B
-- column: output_a tokens | mean output tokens on side A
-- column: output_b tokens | mean output tokens on side B
WITH read AS (
  SELECT
    {{ keyed }}
-- a record may be on both sides: what is compared with itself must not differ
    coalesce({{ a.condition if a is mapping else split[0].text ~ " = $a" }}, false) AS is_a, coalesce({{ b.condition if b is mapping else split[0].text ~ " = $b" }}, false) AS is_b,
    bucket(output_tokens, $output_edges) AS output_cell,
    CASE WHEN failed IS NOT TRUE THEN {{ metric[0].column }} END AS measure,
    failed, output_tokens,
    normal_reason(finish_reason) = 'length' AS truncated
  FROM {{ logs }}
),
grouped AS (
  SELECT {{ keys }} output_cell,
    count(*) FILTER (WHERE is_a) AS requests_a, count(*) FILTER (WHERE is_b) AS requests_b,
    count(measure) FILTER (WHERE is_a) AS measured_a, count(measure) FILTER (WHERE is_b) AS measured_b,
    count(*) FILTER (WHERE is_a AND failed) AS failed_a, count(*) FILTER (WHERE is_b AND failed) AS failed_b,
    count(failed) FILTER (WHERE is_a) AS judged_a, count(failed) FILTER (WHERE is_b) AS judged_b,
    count(truncated) FILTER (WHERE is_a) AS reasons_a, count(truncated) FILTER (WHERE is_b) AS reasons_b,
    count(*) FILTER (WHERE is_a AND truncated) AS truncated_a, count(*) FILTER (WHERE is_b AND truncated) AS truncated_b,
    sum(CAST(output_tokens AS DECIMAL(38, 0))) FILTER (WHERE is_a) AS outputs_a, sum(CAST(output_tokens AS DECIMAL(38, 0))) FILTER (WHERE is_b) AS outputs_b,
    count(output_tokens) FILTER (WHERE is_a) AS output_count_a, count(output_tokens) FILTER (WHERE is_b) AS output_count_b,
    array_agg(measure) FILTER (WHERE is_a AND measure IS NOT NULL) AS values_a,
    array_agg(measure) FILTER (WHERE is_b AND measure IS NOT NULL) AS values_b
  FROM read
  WHERE is_a OR is_b
  GROUP BY {{ keys }}output_cell
),
scoped AS (
{% set sums = "sum(requests_a) AS requests_a, sum(requests_b) AS requests_b, sum(measured_a) AS measured_a, sum(measured_b) AS measured_b, sum(failed_a) AS failed_a, sum(failed_b) AS failed_b, sum(truncated_a) AS truncated_a, sum(judged_a) AS judged_a, sum(judged_b) AS judged_b, sum(reasons_a) AS reasons_a, sum(reasons_b) AS reasons_b, sum(truncated_b) AS truncated_b, CAST(sum(outputs_a) AS DOUBLE) / nullif(sum(output_count_a), 0) AS output_a, CAST(sum(outputs_b) AS DOUBLE) / nullif(sum(output_count_b), 0) AS output_b" %}
  SELECT 0 AS place, 'all, same mix' AS scope, {% for dimension in dimensions %}NULL AS {{ dimension.key }}, {% endfor %}
    {{ sums }}, array_agg(values_a ORDER BY {{ keys }}output_cell) AS parts_a, array_agg(values_b ORDER BY {{ keys }}output_cell) AS parts_b
  FROM grouped
{% if dimensions %}
  UNION ALL
  SELECT 1, 'part', {{ keys }}
    {{ sums }}, make_array(flatten(array_agg(values_a))), make_array(flatten(array_agg(values_b)))
  FROM grouped
  {{ group_by }}
{% endif %}
),
changed AS (
  SELECT scoped.*, number, percentile, percentile_change(parts_a, parts_b, fraction, $confidence, $seed) AS found
  FROM scoped
  CROSS JOIN (VALUES{% for percentile in percentiles %} ({{ loop.index }}, '{{ percentile.name }}', CAST({{ percentile.fraction }} AS DOUBLE)){{ "" if loop.last else "," }}{% endfor %}) AS wanted (number, percentile, fraction)
)
SELECT scope,
  {{ labelled }}
  percentile,
  CASE
    WHEN found IS NULL OR measured_a < $min_count OR measured_b < $min_count THEN 'inconclusive'
-- as many requests with a percentile equal to the last digit: the same records
    WHEN found[1] = found[2] AND measured_a = measured_b THEN 'no difference'
    WHEN found[3] >= -$tolerance AND found[4] <= $tolerance THEN 'no difference'
    WHEN found[3] > 0 THEN 'worse'
    WHEN found[4] < 0 THEN 'better'
    WHEN found[3] > -$detectable AND found[4] < $detectable THEN 'no difference'
    ELSE 'inconclusive'
  END AS verdict,
  found[2] / found[1] - 1 AS change, found[3] AS low, found[4] AS high, found[1] AS a_ms, found[2] AS b_ms,
  measured_a, measured_b,
  CAST(failed_a AS DOUBLE) / nullif(judged_a, 0) AS error_rate_a, CAST(failed_b AS DOUBLE) / nullif(judged_b, 0) AS error_rate_b,
  CAST(truncated_a AS DOUBLE) / nullif(reasons_a, 0) AS truncated_a, CAST(truncated_b AS DOUBLE) / nullif(reasons_b, 0) AS truncated_b,
  output_a, output_b
FROM changed
ORDER BY place, {{ order }}number
{{ limit }}
