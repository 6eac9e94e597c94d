-- title: Trend
-- question: How do traffic, errors and latency change over time?
-- example: trend --every 5m --since 24h logs/
-- example: trend --every 1h --by model --metric ttft --tz Asia/Shanghai logs/
-- param: by dimensions | what to group by, besides the window
-- param: every span 1h | length of a window: a part of a day, or whole days
-- param: offset span | shift of all windows
-- param: sliding integer 1 1..1000 | windows overlap: each is so many times as long as the step between them
-- param: metric metric total | the duration to measure
-- param: percentiles percentiles 50,95,99 | which percentiles to show
-- param: include_failed flag false | measure failed requests too
-- spark: requests error_rate *_p*_ms
-- column: window_start | local start of the window; one without requests is there too, its measures unknown
-- column: requests requests | requests that arrived in it
-- column: per_second requests/s | requests / length of the window
-- column: input_tokens_per_minute tokens/min | input tokens / length of the window; null when none is known
-- column: output_tokens_per_minute tokens/min | output tokens / length of the window, at the arrival of their requests; null when none is known
-- column: failed requests | of them failed
-- column: error_rate ratio | failed / requests whose outcome is known
-- column: measured requests | of them measured: the duration is known and the request did not fail
-- column: *_p*_ms ms | percentile of the measured
WITH read AS (
  SELECT
    {{ keyed }}
    local_window(timestamp, $every, coalesce($offset, 0), $zone) AS first_window,
    failed, input_tokens, output_tokens,
    {{ metric[0].column if include_failed else "CASE WHEN failed IS NOT TRUE THEN " ~ metric[0].column ~ " END" }} AS measure
  FROM {{ logs }}
  WHERE timestamp IS NOT NULL
),
windowed AS (
{% if sliding > 1 %}
-- each request is in all windows that reach over it
  SELECT *, local_window(first_window - arrow_cast(back * $every * 1000000, 'Duration(Nanosecond)'), $every, coalesce($offset, 0), $zone) AS window_start
  FROM (SELECT *, unnest(range(0, $sliding)) AS back FROM read)
{% else %}
  SELECT *, first_window AS window_start FROM read
{% endif %}
),
grouped AS (
  SELECT
    {{ keys }}
    window_start,
    count(*) AS requests,
    count(*) FILTER (WHERE failed) AS failed, count(failed) AS judged,
    CAST(sum(CAST(input_tokens AS DECIMAL(38, 0))) AS DOUBLE) AS input_tokens,
    CAST(sum(CAST(output_tokens AS DECIMAL(38, 0))) AS DOUBLE) AS output_tokens,
    count(measure) AS measured,
    percentiles(measure, $percentiles) AS percentiles
  FROM windowed
  GROUP BY {{ keys }}window_start
),
followed AS (
-- how many windows until the next one that has requests
  SELECT *,
    greatest(1, coalesce(CAST(round((
      arrow_cast(lead(window_start) OVER ({{ partition_by }} ORDER BY window_start), 'Int64')
      - arrow_cast(window_start, 'Int64')) / ($every * 1000000.0)) AS BIGINT), 1)) AS steps
  FROM grouped
),
filled AS (
-- half steps, so that the short last window of a longer day is met
  SELECT *, unnest(range(0, least(2 * steps, 20000000))) AS half FROM followed
),
placed AS (
  SELECT *, CASE WHEN half = 0 THEN 0 ELSE 1 END AS step,
    CASE WHEN half = 0 THEN window_start
      ELSE local_window(window_start + arrow_cast(half * $every * 500000, 'Duration(Nanosecond)'), $every, coalesce($offset, 0), $zone)
    END AS shown
  FROM filled
),
kept AS (
  SELECT *, row_number() OVER (PARTITION BY {{ keys }}shown ORDER BY step) AS place FROM placed
),
timed AS (
-- a day of the clock change has 23 or 25 hours
  SELECT *,
    (arrow_cast(local_window_end({{ "shown" if sliding == 1 else "shown + arrow_cast((($sliding - 1) * $every + $every / 2) * 1000000, 'Duration(Nanosecond)')" }}, $every, coalesce($offset, 0), $zone), 'Int64')
      - arrow_cast(shown, 'Int64')) / 1e9 AS seconds
  FROM kept
  WHERE place = 1
)
SELECT
  {{ labelled }}
  shown AS window_start,
  CASE WHEN step = 0 THEN requests ELSE 0 END AS requests,
  CASE WHEN step = 0 THEN requests ELSE 0 END / seconds AS per_second,
  CASE WHEN step = 0 THEN input_tokens END / seconds * 60 AS input_tokens_per_minute,
  CASE WHEN step = 0 THEN output_tokens END / seconds * 60 AS output_tokens_per_minute,
  CASE WHEN step = 0 THEN failed ELSE 0 END AS failed,
  CASE WHEN step = 0 THEN CAST(failed AS DOUBLE) / nullif(judged, 0) END AS error_rate,
  CASE WHEN step = 0 THEN measured ELSE 0 END AS measured
{% for percentile in percentiles %},
  CASE WHEN step = 0 THEN percentiles[{{ loop.index }}] END AS {{ metric[0].name }}_{{ percentile.name }}_ms
{% endfor %}
FROM timed
ORDER BY {{ order }}shown
{{ limit }}
