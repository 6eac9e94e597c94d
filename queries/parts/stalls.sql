-- The `steps` of gaps.sql as `judged`: `is_stall`, by the parameters `window`, `times` and `least_excess`, and `excess` over the median `around`.
watched AS (
  SELECT *, around(gap, $window) OVER stream AS usual, count(any_gap) OVER whole AS whole_gaps,
    2 * count(CASE WHEN NOT cache_hit THEN 1 END) OVER whole < count(*) OVER whole AS misses_are_few
  FROM steps
  WINDOW stream AS (PARTITION BY sequence ORDER BY token_index, timestamp, source_offset), whole AS (PARTITION BY sequence)
),
spread AS (
  SELECT *, usual['median'] AS around, gap - usual['median'] AS excess, usual['mad'] AS mad, usual['known'] AS known
  FROM watched
),
judged AS (
  SELECT *, coalesce(known >= 5 AND excess >= $least_excess AND excess > $times * 1.4826 * mad, false) AS is_stall
  FROM spread
),
