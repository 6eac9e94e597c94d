-- title: Step time
-- question: Does a step take longer with a longer context, a larger batch, a longer wait, or a cache miss?
-- example: tokens relate logs/
-- example: tokens relate --by model,gpu --sort spearman logs/
-- sampled: records
-- param: by dimensions model | what to group by: as the record of the request says, else as the step does
-- param: min_count integer 30 3..1000000000 | fewer steps have no correlation
-- pivot: spearman
-- column: unit | token: one step is one token; chunk: a step may be several, as the log says, or as most steps of the request go on by more than one index
-- column: factor | context length: as logged, else input tokens + tokens before the step; batch size; wait before the step; cache miss and recompute: 1 where the step says so, 0 where it denies
-- column: measured steps | steps whose time and factor are known, the first of each request left out, as it is the prefill. The time is that of the step without the wait before it: as logged, else the gap - the wait
-- column: unknown steps | steps whose time is known but not the factor
-- column: pearson | linear correlation, -1 to 1, each step counts once; null where the factor or the time is the same everywhere
-- column: spearman | rank correlation, -1 to 1, with mean ranks for equal values: it also sees what bends, and single stalls do not decide it
-- column: slope ms | ms that the straight line of least squares goes up for each per
-- column: per | what the slope is for: 1,000 tokens of context, 1 request in the batch, 1 ms of wait, a miss, a recompute
-- column: factor_mean | mean of the factor, in tokens, requests, ms, or the share of steps
-- column: step_mean_ms ms | mean time of these steps
{% set of_request = ["input_tokens"] %}
{% set of_step = ["batch_size"] %}
{% set factors = [
  {"x": "context", "name": "context length", "size": 1000, "per": "1,000 tokens"},
  {"x": "batch", "name": "batch size", "size": 1, "per": "request"},
  {"x": "wait", "name": "wait", "size": 1, "per": "ms of wait"},
  {"x": "miss", "name": "cache miss", "size": 1, "per": "miss"},
  {"x": "again", "name": "recompute", "size": 1, "per": "recompute"}] %}
WITH
{% include "parts/gaps.sql" %}
begun AS (
  SELECT *, min(token_index) OVER (PARTITION BY sequence) AS first_index
  FROM steps
),
timed AS (
  SELECT {{ keys }}unit, coalesce(step_ms, gap - coalesce(wait_ms, 0)) AS time,
    coalesce(CAST(context_len AS DOUBLE), CASE WHEN unit = 'token' THEN CAST(input_tokens AS DOUBLE) + (token_index - first_index) END) AS context,
    CAST(batch_size AS DOUBLE) AS batch, wait_ms AS wait, 1.0 - CAST(CAST(cache_hit AS INT) AS DOUBLE) AS miss, CAST(CAST(recompute AS INT) AS DOUBLE) AS again
  FROM begun
  WHERE place > 1
)
SELECT {{ keys }}unit, count(*) AS steps,
{% for factor in factors %}
  relation({{ factor.x }}, time) AS {{ factor.x }}, exact_mean({{ factor.x }}) AS {{ factor.x }}_mean, exact_mean(time) FILTER (WHERE {{ factor.x }} IS NOT NULL) AS {{ factor.x }}_time{{ "" if loop.last else "," }}
{% endfor %}
FROM timed
WHERE time >= 0
GROUP BY {{ keys }}unit
-- step: relations
SELECT {{ labelled }}unit, factor, related['n'] AS measured, steps - related['n'] AS unknown,
{% for column in ["pearson", "spearman", "slope"] %}
  CASE WHEN related['n'] >= $min_count THEN related['{{ column }}']{{ " * size" if column == "slope" }} END AS {{ column }},
{% endfor %}
  per, factor_mean, step_mean_ms
FROM (
{% for factor in factors %}
  SELECT {{ keys }}unit, steps, {{ loop.index }} AS position, '{{ factor.name }}' AS factor, {{ factor.size }} AS size, '{{ factor.per }}' AS per,
    {{ factor.x }} AS related, {{ factor.x }}_mean AS factor_mean, {{ factor.x }}_time AS step_mean_ms
  FROM relations
{{ "" if loop.last else "  UNION ALL" }}
{% endfor %}
)
WHERE related['n'] > 0
ORDER BY {{ order }}unit DESC, position
{{ limit }}
