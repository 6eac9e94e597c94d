-- title: Knee
-- question: At which input length does latency bend, and whose requests lie beyond it?
-- example: knee logs/
-- example: knee --by tenant --metric total --bend 2 logs/
-- param: by dimensions business-line | whose requests lie beyond, besides the model
-- param: metric metric ttft | the duration that bends
-- param: bend number 1.5 1..1000 | how many times as steep it must be beyond the knee
-- param: min_count integer 30 1..1000000000 | leave out classes of input length with fewer requests
-- column: model | the model: the fit is of all its measured requests
-- column: status | knee; no knee: one line fits, or it gets less steep; too little: fewer than 6 classes of input length
-- column: knee_tokens tokens | input tokens where the two lines meet
-- column: ms_per_1k_tokens_before ms | slope of the line before it, per 1,024 tokens; without a knee that of one line through all
-- column: ms_per_1k_tokens_after ms | slope of the line after it
-- column: error_ratio ratio | mean squared error of the two lines / that of one line, by degrees of freedom (classes - 4, classes - 2); a knee needs 0.5 or less
-- column: classes | classes of input length in the fit: each spans half of a doubling, and stands for its medians of tokens and metric, weighted by requests / squared median, as longer durations spread more; the break is the best of eight places between each two, with two classes or more on either side
-- column: requests requests | all requests of the group
-- column: measured requests | of them with input tokens and metric that did not fail
-- column: beyond requests | of the measured those with more input tokens than the knee
-- column: share ratio | beyond / measured
-- column: *_p50_below_ms ms | median of the measured up to the knee, or of all without a knee
-- column: *_p50_beyond_ms ms | median of those beyond it
-- column: tokens_beyond tokens | input tokens of those beyond; null beyond 64 bits
-- total: requests measured beyond
WITH read AS (
-- half of a doubling: two classes for each power of 2
  SELECT model_name, CAST(input_tokens AS DOUBLE) AS tokens, {{ metric[0].column }} AS measure,
    CAST(floor(2 * log2(CAST(input_tokens AS DOUBLE))) AS BIGINT) AS class
  FROM {{ logs }}
  WHERE failed IS NOT TRUE AND input_tokens > 0 AND {{ metric[0].column }} IS NOT NULL
)
SELECT model_name, class, count(*) / nullif(median(measure) * median(measure), 0) AS w, median(tokens) AS x, median(measure) AS y
FROM read
GROUP BY model_name, class
HAVING count(*) >= $min_count AND median(measure) > 0
-- step: classes
WITH placed AS (
  SELECT *, coalesce(model_name, '') || CASE WHEN model_name IS NULL THEN 'unknown' ELSE '.' END AS id,
    row_number() OVER (PARTITION BY model_name ORDER BY class) AS place, count(*) OVER (PARTITION BY model_name) AS classes,
    lead(x) OVER (PARTITION BY model_name ORDER BY class) AS next_x
  FROM classes
),
breaks AS (
  SELECT id, x + (next_x - x) * eighth / 8.0 AS knee
  FROM placed CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7)) AS eighths (eighth)
  WHERE place BETWEEN 2 AND classes - 2 OR place = classes - 1 AND eighth = 0
),
hinged AS (
  SELECT placed.id, model_name, classes, knee, w, x, y, greatest(x - knee, 0) AS z
  FROM placed JOIN breaks ON placed.id = breaks.id
  WHERE classes >= 6
),
averaged AS (
  SELECT id, knee, exact_sum(w * x) / exact_sum(w) AS mean_x, exact_sum(w * y) / exact_sum(w) AS mean_y, exact_sum(w * z) / exact_sum(w) AS mean_z
  FROM hinged
  GROUP BY id, knee
),
centred AS (
  SELECT hinged.id, model_name, classes, hinged.knee, w, x - mean_x AS x, y - mean_y AS y, z - mean_z AS z
  FROM hinged JOIN averaged ON hinged.id = averaged.id AND hinged.knee = averaged.knee
),
summed AS (
  SELECT id, model_name, classes, knee,
    exact_sum(w * x * x) AS xx, exact_sum(w * x * y) AS xy, exact_sum(w * x * z) AS xz, exact_sum(w * y * y) AS yy, exact_sum(w * y * z) AS yz, exact_sum(w * z * z) AS zz
  FROM centred
  GROUP BY id, model_name, classes, knee
),
solved AS (
-- least squares of y = a + before * x + turn * z, by Cramer's rule
  SELECT *, (xy * zz - yz * xz) / nullif(xx * zz - xz * xz, 0) AS before, (yz * xx - xy * xz) / nullif(xx * zz - xz * xz, 0) AS turn FROM summed
),
erred AS (
  SELECT *, greatest(yy - before * xy - turn * yz, 0) AS error, yy - xy * xy / xx AS line_error FROM solved
),
fitted AS (
  SELECT *, (error / (classes - 4)) / nullif(line_error / (classes - 2), 0) AS error_ratio FROM (
    SELECT *, row_number() OVER (PARTITION BY id ORDER BY error, knee) AS place FROM erred WHERE error IS NOT NULL
  )
  WHERE place = 1
),
found AS (
-- a straight line to the last digit has no error to compare
  SELECT *, coalesce(error_ratio <= 0.5 AND line_error > 1e-9 * yy AND before > 0 AND before + turn >= $bend * before, false) AS has_knee FROM fitted
)
SELECT model_name AS fitted_model, classes, error_ratio, xy / xx AS slope, before, before + turn AS after, CASE WHEN has_knee THEN knee END AS knee
FROM found
-- step: fits
WITH read AS (
  SELECT
    {{ keyed }}
    model_name, input_tokens, failed IS NOT TRUE AND input_tokens > 0 AND {{ metric[0].column }} IS NOT NULL AS measured,
    CASE WHEN failed IS NOT TRUE AND input_tokens > 0 THEN {{ metric[0].column }} END AS measure,
    knee, before, after, slope, classes, error_ratio
  FROM {{ logs }}
  LEFT JOIN fits ON (model_name IS NOT DISTINCT FROM fitted_model)
),
grouped AS (
  SELECT
    {{ keys }}
    model_name, knee, before, after, slope, classes, error_ratio,
    count(*) AS requests, count(*) FILTER (WHERE measured) AS measured,
    count(*) FILTER (WHERE measured AND input_tokens > knee) AS beyond,
    median(CASE WHEN knee IS NULL OR input_tokens <= knee THEN measure END) AS below_p50,
    median(CASE WHEN input_tokens > knee THEN measure END) AS beyond_p50,
    TRY_CAST(sum(CAST(input_tokens AS DECIMAL(38, 0))) FILTER (WHERE measured AND input_tokens > knee) AS BIGINT) AS tokens
  FROM read
  GROUP BY {{ keys }}model_name, knee, before, after, slope, classes, error_ratio
)
SELECT
  {{ labelled }}
  model_name AS model,
  CASE WHEN classes IS NULL THEN 'too little' WHEN knee IS NULL THEN 'no knee' ELSE 'knee' END AS status,
  CAST(round(knee) AS BIGINT) AS knee_tokens,
  CASE WHEN knee IS NULL THEN slope ELSE before END * 1024 AS ms_per_1k_tokens_before,
  CASE WHEN knee IS NOT NULL THEN after END * 1024 AS ms_per_1k_tokens_after,
  error_ratio, classes, requests, measured,
  CASE WHEN knee IS NOT NULL THEN beyond END AS beyond,
  CASE WHEN knee IS NOT NULL THEN CAST(beyond AS DOUBLE) / nullif(measured, 0) END AS share,
  below_p50 AS {{ metric[0].name }}_p50_below_ms, beyond_p50 AS {{ metric[0].name }}_p50_beyond_ms,
  CASE WHEN beyond > 0 THEN tokens WHEN knee IS NOT NULL THEN 0 END AS tokens_beyond
FROM grouped
ORDER BY {{ order }}model_name
{{ limit }}
