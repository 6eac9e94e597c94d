-- title: Shadow traffic
-- question: The same requests sent to A and to B: how much slower is B on each of them, and is that more than chance?
-- example: shadow --split source_file --a live.ndjson --b shadow.ndjson live.ndjson shadow.ndjson
-- example: shadow --key prompt_hash --a v2.3.0 --b v2.4.0 --metric ttft logs/
-- sampled: refused
-- param: key dimensions request_id | what both records of a pair have in common
-- param: split dimensions version | what tells A from B: a dimension or a column
-- param: a side ! | its value on side A, or `where` and a condition on records
-- param: b side ! | its value on side B, or `where` and a condition on records
-- param: metric metric total | the duration to compare
-- param: tolerance number 0.05 0..10 | changes within this are no difference
-- param: min_count integer 30 1..1000000000 | fewer pairs are inconclusive
-- column: scope | all pairs, or one part of them
-- column: input_bucket | input tokens on side A, lower edge included
-- column: verdict | worse, better, no difference, or inconclusive, on side B
-- column: change ratio | median over the pairs of B / A - 1
-- column: low ratio | lower bound of the median at 99 %, by the order of the pairs alone (sign test)
-- column: high ratio | upper bound of the median
-- column: pairs requests | keys with a measured record on both sides; of several on one side the first
-- column: slower ratio | pairs that took longer on B / pairs
-- column: a_ms ms | median on side A, of the pairs
-- column: b_ms ms | median on side B, of the pairs
-- column: same_output ratio | pairs whose output tokens are equal / pairs that have both
-- column: only_a requests | keys that are on side A alone
-- column: only_b requests | keys that are on side B alone
-- column: failed_a requests | keys on both sides that failed on A alone
-- column: failed_b requests | keys on both sides that failed on B alone
WITH read AS (
  SELECT {{ key[0].value }} AS id, timestamp, source_file, source_offset, input_tokens, output_tokens, failed,
    coalesce({{ a.condition if a is mapping else split[0].text ~ " = $a" }}, false) AS is_a,
    coalesce({{ b.condition if b is mapping else split[0].text ~ " = $b" }}, false) AS is_b,
    CASE WHEN failed IS NOT TRUE THEN {{ metric[0].column }} END AS measure
  FROM {{ logs }}
),
paired AS (
  SELECT id,
{% for side in ["a", "b"] %}
    bool_or(is_{{ side }}) AS on_{{ side }}, coalesce(bool_and(failed) FILTER (WHERE is_{{ side }}), false) AS failed_{{ side }},
    first_value(measure ORDER BY timestamp, source_file, source_offset) FILTER (WHERE is_{{ side }} AND measure > 0) AS measure_{{ side }},
    first_value(output_tokens ORDER BY timestamp, source_file, source_offset) FILTER (WHERE is_{{ side }} AND measure > 0) AS output_{{ side }},
{% endfor %}
    bucket(max(CASE WHEN is_a THEN input_tokens END), $input_edges) AS cell
  FROM read
  WHERE id IS NOT NULL AND (is_a OR is_b)
  GROUP BY id
),
grouped AS (
  SELECT cell, grouping(cell) AS is_all, count(measure_a / measure_b) AS pairs, percentiles(measure_b / measure_a, [0.5]) AS middle,
    array_sort(array_agg(measure_b / measure_a) FILTER (WHERE measure_b / measure_a IS NOT NULL)) AS ratios,
    count(*) FILTER (WHERE measure_b > measure_a) AS slower,
    median(CASE WHEN measure_b IS NOT NULL THEN measure_a END) AS a_ms, median(CASE WHEN measure_a IS NOT NULL THEN measure_b END) AS b_ms,
    count(*) FILTER (WHERE measure_a IS NOT NULL AND measure_b IS NOT NULL AND output_a = output_b) AS same_output,
    count(CASE WHEN measure_a IS NOT NULL AND measure_b IS NOT NULL THEN output_a - output_b END) AS with_output,
    count(*) FILTER (WHERE on_a AND NOT on_b) AS only_a, count(*) FILTER (WHERE on_b AND NOT on_a) AS only_b,
    count(*) FILTER (WHERE on_a AND on_b AND failed_a AND NOT failed_b) AS failed_a,
    count(*) FILTER (WHERE on_a AND on_b AND failed_b AND NOT failed_a) AS failed_b
  FROM paired
  GROUP BY GROUPING SETS ((), (cell))
),
ranked AS (
-- of n values the median lies between those at n/2 -+ 2.576 sqrt(n)/2, counted from 1, in 99 of 100 cases
  SELECT *, greatest(1, CAST(floor(pairs / 2.0 - 2.576 * sqrt(pairs) / 2) AS BIGINT)) AS low_rank,
    least(pairs, CAST(ceil(pairs / 2.0 + 2.576 * sqrt(pairs) / 2) AS BIGINT) + 1) AS high_rank
  FROM grouped
),
bounded AS (
  SELECT *, middle[1] - 1 AS change, ratios[low_rank] - 1 AS low, ratios[high_rank] - 1 AS high FROM ranked
)
SELECT CASE is_all WHEN 1 THEN 'all' ELSE 'part' END AS scope, bucket_label(cell, $input_edges) AS input_bucket,
  CASE WHEN pairs < $min_count THEN 'inconclusive'
    WHEN low >= -$tolerance AND high <= $tolerance THEN 'no difference'
    WHEN low > 0 THEN 'worse'
    WHEN high < 0 THEN 'better'
    ELSE 'inconclusive' END AS verdict,
  change, low, high, pairs, CAST(slower AS DOUBLE) / nullif(pairs, 0) AS slower, a_ms, b_ms,
  CAST(same_output AS DOUBLE) / nullif(with_output, 0) AS same_output, only_a, only_b, failed_a, failed_b
FROM bounded
ORDER BY {{ sort }}is_all DESC, cell NULLS LAST
{{ limit }}
