-- The stalls among `judged` of stalls.sql as the table `stalls`, each with its `cause`, `event` and `neighbours`, by the parameters `ahead` and `beside`.
stalled AS (
  SELECT row_number() OVER (ORDER BY sequence, token_index, timestamp, source_offset) AS stall, *
  FROM judged
  WHERE is_stall
)
SELECT {{ keys }}stall, request_id, unit, token_index, timestamp, at, gap, around, excess, wait_ms, context_len, cache_hit, recompute, misses_are_few, batch_size, model_name, gpu_id, host, batch_id
FROM stalled
-- step: stalled
WITH named AS (
-- a line of text is an event where it tells of something that keeps steps waiting
  SELECT request_id, gpu_id, host, arrow_cast(timestamp, 'Int64') AS at,
    coalesce(event, regexp_match(lower(message), 'preempt|evict|swap|recomput|out of memory|compil|capture|garbage|reload')[1]) AS name
  FROM events
  WHERE timestamp BETWEEN '1970-01-01T00:00:00Z' AND '2100-01-01T00:00:00Z'
),
found AS (
{% for same in ["stalled.request_id = named.request_id", "stalled.gpu_id = named.gpu_id AND coalesce(stalled.host = named.host, true)"] %}
  SELECT stall, named.at, name
  FROM stalled
  JOIN named ON {{ same }} AND named.at BETWEEN stalled.at - gap * 1e6 - $ahead * 1e6 AND stalled.at
  WHERE name IS NOT NULL
{{ "" if loop.last else "  UNION ALL" }}
{% endfor %}
)
SELECT stall, first_value(name ORDER BY at, name) AS event
FROM found
GROUP BY stall
-- step: found
WITH placed AS (
  SELECT stall, request_id, at, 'batch ' || batch_id AS place FROM stalled WHERE at IS NOT NULL AND batch_id IS NOT NULL
  UNION ALL
  SELECT stall, request_id, at, concat('gpu ', host, ' ', gpu_id) FROM stalled WHERE at IS NOT NULL AND gpu_id IS NOT NULL
),
-- stretches of time as long as neighbours may be apart: they are in the same or the next
cut AS (
  SELECT *, at / greatest($beside * 1000000, 1) AS stretch
  FROM placed
),
reached AS (
  SELECT stall, request_id, at, place, unnest(make_array(stretch - 1, stretch, stretch + 1)) AS stretch
  FROM cut
)
SELECT reached.stall, count(DISTINCT CASE WHEN abs(reached.at - cut.at) <= $beside * 1000000 AND reached.request_id <> cut.request_id THEN cut.request_id END) AS neighbours
FROM reached
-- itself among them, so that none is known to be 0
JOIN cut ON reached.place = cut.place AND reached.stretch = cut.stretch
GROUP BY reached.stall
-- step: beside
SELECT stalled.*, event, neighbours,
  CASE WHEN recompute THEN 'recompute' WHEN NOT cache_hit AND misses_are_few THEN 'cache miss' WHEN wait_ms >= excess / 2 THEN 'wait'
    WHEN event IS NOT NULL THEN 'event' WHEN neighbours >= 2 THEN 'neighbours' ELSE 'unknown' END AS cause
FROM stalled
LEFT JOIN found ON stalled.stall = found.stall
LEFT JOIN beside ON stalled.stall = beside.stall
-- step: stalls
