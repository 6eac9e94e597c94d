-- title: Sample
-- question: Which few records stand for all of them, with every failure and every long answer kept?
-- example: sample --rate 0.01 --format jsonl -o sample.ndjson logs/
-- example: sample --rate 0.05 --by business-line,model,hour --format parquet -o sample.parquet logs/
-- sampled: refused
-- param: rate number 0.1 0.000001..1 | which part of the ordinary records to keep
-- param: by dimensions business-line,version,input-bucket | what none may vanish of: each group has a rate of its own
-- param: least integer 30 0..1000000000 | a group with fewer records than that at the rate is kept at ten times the rate, else whole
-- param: long_output integer 2048 0..1000000000 | answers of at least so many tokens are all kept
-- param: seed integer 1 | of the draw: the same seed keeps the same ids
-- column: sample_weight | how many records of its group the record stands for: all of them / the kept ones; 1 where all are kept
{% set whole %}
(coalesce(failed, false) OR coalesce(output_tokens >= $long_output, false)
  OR coalesce(normal_reason(finish_reason) NOT IN ('stop', 'tool'), false))
{%- endset %}
{% set chance = "draw(coalesce(request_id, source_file || coalesce(CAST(source_offset AS VARCHAR), '')), $seed)" %}
WITH read AS (
  SELECT
    {{ keyed }}
    {{ chance }} AS __chance
  FROM {{ logs }}
  WHERE NOT {{ whole }}
),
counted AS (
  SELECT
    {{ keys }}
    count(*) AS records, count(*) FILTER (WHERE __chance < $rate) AS kept, count(*) FILTER (WHERE __chance < 10 * $rate) AS kept_of_few
  FROM read
  {{ group_by }}
)
SELECT {{ keys }}
  CASE WHEN kept >= greatest($least, 1) THEN $rate WHEN kept_of_few >= greatest($least, 1) THEN 10 * $rate ELSE 1.0 END AS __rate,
  CASE WHEN kept >= greatest($least, 1) THEN CAST(records AS DOUBLE) / kept WHEN kept_of_few >= greatest($least, 1) THEN CAST(records AS DOUBLE) / kept_of_few ELSE 1.0 END AS __weight
FROM counted
-- step: strata
WITH read AS (
  SELECT *,
    {{ keyed }}
    {{ chance }} AS __chance, {{ whole }} AS __whole
  FROM {{ logs }}
)
SELECT read.* EXCEPT (sample_weight, source_file, source_offset, __chance, __whole{% for dimension in dimensions %}, {{ dimension.key }}{% endfor %}),
  CASE WHEN __whole THEN 1.0 ELSE __weight END AS sample_weight
FROM read
{{ "LEFT JOIN strata ON " ~ same_keys("read", "strata") if dimensions else "CROSS JOIN strata" }}
WHERE __whole OR __chance < __rate
ORDER BY {{ sort }}timestamp, source_file, source_offset
{{ limit }}
