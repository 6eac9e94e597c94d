-- title: Idle spans
-- question: When is there so little to do that GPUs could be given back, or batch work could run?
-- example: idle logs/
-- example: idle --by gpu --mark 1 --span 5m --tz Asia/Shanghai logs/
-- sampled: refused
-- param: by dimensions | what to group by: each group has idle spans of its own
-- param: mark integer 1..1000000000 | a minute with fewer requests is idle; without it, a tenth of the group's busy (95th percentile) minute, and at least 1
-- param: span span 15m | the shortest stretch of idle minutes to show
-- column: idle_from | local start of the first idle minute
-- column: idle_until | end of the last idle minute
-- column: minutes min | idle minutes in a row; all minutes of the clock count, from the first record of all groups to the last, empty ones too
-- column: share ratio | minutes / all minutes from the first record to the last
-- column: requests requests | requests that arrived in them
-- column: peak requests/min | the most requests in one of them
-- column: mark requests/min | the mark: each of these minutes has fewer
-- column: edge | first, last or both: the span touches that minute of the logs, and may be longer than they show; or inside
-- total: minutes
WITH read AS (
  SELECT {{ keyed }} timestamp FROM {{ logs }} WHERE timestamp IS NOT NULL
)
SELECT {{ keys }} minute, count(*) AS requests
FROM (SELECT {{ keys }} local_period(timestamp, 'minute', $zone, $week_start) AS minute FROM read)
GROUP BY {{ keys }}minute
-- step: minutes
WITH numbered AS (
-- minutes as numbers: the empty ones of a gap need not be listed, however long it is
  SELECT
    {{ keys }}
    requests, minute, min(minute) OVER () AS first_minute, max(minute) OVER () AS last_minute
  FROM (SELECT {{ keys }} requests, CAST(round(arrow_cast(minute, 'Int64') / 60000000000.0) AS BIGINT) AS minute FROM minutes)
),
ranked AS (
-- of all minutes 5 % may have more requests than the busy one
  SELECT *,
    row_number() OVER ({{ partition_by }} ORDER BY requests DESC, minute) AS place, (last_minute - first_minute + 1) * 5 / 100 + 1 AS busy_place
  FROM numbered
),
marked AS (
  SELECT {{ keys }} requests, minute, first_minute, last_minute,
    coalesce($mark, CAST(ceil(max(CASE WHEN place = busy_place THEN requests END) OVER ({{ partition_by }}) / 10.0) AS BIGINT), 1) AS mark
  FROM ranked
),
blocked AS (
-- a block is a minute that reaches the mark and all that follow until the next such minute; the first follows the minute before the logs
  SELECT *, requests IS NULL OR requests >= mark AS is_busy,
    sum(CASE WHEN requests IS NULL OR requests >= mark THEN 1 ELSE 0 END) OVER ({{ partition_by }} ORDER BY minute) AS block
  FROM (
    SELECT {{ keys }} requests, minute, first_minute, last_minute, mark FROM marked
    UNION ALL
    SELECT DISTINCT {{ keys }} CAST(NULL AS BIGINT), first_minute - 1, first_minute, last_minute, mark FROM marked
  )
),
grouped AS (
  SELECT
    {{ keys }}
    block, mark, first_minute, last_minute,
    min(minute) + 1 AS idle_from,
    coalesce(sum(requests) FILTER (WHERE NOT is_busy), 0) AS requests,
    coalesce(max(requests) FILTER (WHERE NOT is_busy), 0) AS peak
  FROM blocked
  GROUP BY {{ keys }}block, mark, first_minute, last_minute
),
spans AS (
  SELECT *, coalesce(lead(idle_from) OVER ({{ partition_by }} ORDER BY block) - 1, last_minute + 1) AS idle_until FROM grouped
)
SELECT
  {{ labelled }}
  arrow_cast(idle_from * 60000000000, 'Timestamp(Nanosecond, Some("UTC"))') AS idle_from,
  arrow_cast(idle_until * 60000000000, 'Timestamp(Nanosecond, Some("UTC"))') AS idle_until,
  idle_until - idle_from AS minutes,
  CAST(idle_until - idle_from AS DOUBLE) / (last_minute - first_minute + 1) AS share,
  requests, peak, mark,
  CASE WHEN idle_from = first_minute AND idle_until > last_minute THEN 'both' WHEN idle_from = first_minute THEN 'first'
    WHEN idle_until > last_minute THEN 'last' ELSE 'inside' END AS edge
FROM spans
WHERE (idle_until - idle_from) * 60000 >= $span AND idle_until > idle_from
ORDER BY {{ order }}idle_from
{{ limit }}
