-- title: Forecast
-- question: How much will come in the next days, and when to scale up?
-- example: forecast logs/
-- example: forecast --measure tokens --by model --days 14 --tz Europe/Berlin logs/
-- example: forecast --weekdays logs/
-- sampled: refused
-- param: measure choice requests tokens | requests, or their input and output tokens, counted at arrival
-- param: by dimensions | what to group by
-- param: days integer 7 1..28 | how many days to look ahead
-- param: confidence number 0.9 0.5..0.99 | how often the peak should fall inside the band
-- param: min_days integer 14 1..1000 | no numbers from fewer full days
-- param: lead span 30m | how long before the hour of the peak to scale up
-- param: weekdays flag false | show what the weekdays were like instead of the days to come
-- column: day | local date: those after the last full day of the logs. The first and the last day of the logs are full if something came in their first or last hour
-- column: weekday | its weekday; with --weekdays, `all` is all days together
-- column: status | ok; not enough history: fewer full days than asked for; stale: nothing is known of the last 7 days; no such weekday: none of the full days is one
-- column: expected_peak per min | median of the busiest minutes of the full days with that weekday, minutes by the clock
-- column: low per min | lower end of the band: expected_peak x a quantile of what earlier peaks were of the median of the same weekday up to then
-- column: high per min | upper end of the band; its quantiles stand at rank p(n + 1) of the n earlier days, so from few days it is their whole range and covers less than asked for
-- column: peak_hour | local hour that most often held the busiest minute of such a day; of equal minutes or hours that in which more came counts, then the first
-- column: hour_days days | days of that weekday whose busiest minute was in that hour: where they are few, the hour is chance
-- column: scale_up_at | start of that hour on that day, less the lead
-- column: expected_total | median of all that came on the full days with that weekday
-- column: days days | full days with that weekday that are known; a day without any record is unknown, not zero
-- column: history_days days | full days of any weekday that are known
-- column: gap_days days | days from the first of them to the last full day of the logs of which nothing is known
-- column: recent_ratio ratio | median of peak / median of its weekday up to then, over the last 7 days: well above 1 traffic grows and the forecast lags: give less history, by --since. It is not corrected
-- column: band_days days | earlier days that the band is made of: those with a day of their weekday before them
-- column: backtest_days days | days that were forecast from the days before them alone, band included
-- column: backtest_inside days | of them days whose peak was in that band
-- column: coverage ratio | backtest_inside / backtest_days; null when no day could be tested. It holds for up to 7 days ahead, as the last day of the same weekday is then known
-- column: counted requests | requests in these full days
-- column: left_out requests | requests without a time, of days that are not full, and for tokens those whose tokens are not known
-- column: first_day | the first full day that is known
-- column: last_day | the last full day that is known
-- column: median_total | median of all that came in a day
-- column: median_peak per min | median of the busiest minutes of the days
-- column: max_peak per min | the busiest minute of all days
-- column: p*_minute_30d per min | percentile of the minutes of the last 30 days to the last full day, empty minutes of known days too

{% set members = dimensions | map(attribute="key") | join(", ") %}
WITH read AS (
  SELECT
    {{ keyed }}
    local_period(timestamp, 'minute', $zone, $week_start) AS minute,
{% if measure == "tokens" %}
    CASE WHEN coalesce(input_tokens, output_tokens) IS NOT NULL
      THEN CAST(coalesce(input_tokens, 0) AS DECIMAL(38, 0)) + coalesce(output_tokens, 0) END AS amount
{% else %}
    1 AS amount
{% endif %}
  FROM {{ logs }}
)
SELECT {{ keys }} minute, count(*) AS requests, count(amount) AS known, TRY_CAST(sum(amount) AS BIGINT) AS amount
FROM read
GROUP BY {{ keys }}minute
-- step: minutes
WITH placed AS (
  SELECT *,
    {{ "dense_rank() OVER (ORDER BY " ~ members ~ ")" if members else "1" }} AS member,
    local_window(minute, 86400000, 0, $zone) AS day, local_window_end(minute, 86400000, 0, $zone) AS day_end,
    local_part(minute, 'date', $zone, $week_start) AS date, local_part(minute, 'hour', $zone, $week_start) AS hour,
    local_part(minute, 'weekday', $zone, 'monday') AS weekday
  FROM minutes
),
edges AS (
  SELECT min(minute) AS first_minute, max(minute) AS last_minute, min(day) AS first_day, max(day) AS last_day FROM placed
)
SELECT placed.*,
  (day > first_day OR first_minute < day + INTERVAL '1 hour') AND (day < last_day OR last_minute >= day_end - INTERVAL '1 hour') AS is_full
FROM placed
CROSS JOIN edges
-- step: placed
WITH hourly AS (
  SELECT *, sum(CAST(amount AS DECIMAL(38, 0))) OVER (PARTITION BY member, date, hour) AS in_hour
  FROM placed
  WHERE is_full AND amount IS NOT NULL
),
ranked AS (
  SELECT *, row_number() OVER (PARTITION BY member, date ORDER BY amount DESC, in_hour DESC, minute) AS place FROM hourly
)
SELECT member, date, weekday,
  max(amount) AS peak, max(CASE WHEN place = 1 THEN hour END) AS hour, max(CASE WHEN place = 1 THEN in_hour END) AS in_hour,
  TRY_CAST(sum(CAST(amount AS DECIMAL(38, 0))) AS BIGINT) AS total,
  CAST(sum(known) AS BIGINT) AS counted
FROM ranked
GROUP BY member, date, weekday
-- step: known
WITH counted AS (
  SELECT member, count(*) AS history_days, min(date) AS first_date, max(date) AS last_date, sum(counted) AS counted
  FROM known
  GROUP BY member
),
logged AS (
  SELECT {{ keys }} member, sum(requests) AS requests
  FROM placed
  GROUP BY {{ keys }}member
),
ended AS (
  SELECT max(CASE WHEN is_full THEN date END) AS last_full, max(CASE WHEN is_full THEN day END) AS last_full_day, max(day) AS last_day FROM placed
)
-- without a full day the last one that is there is the first to come
SELECT {{ keys }} logged.member, coalesce(history_days, 0) AS history_days, first_date, last_date, last_full,
  coalesce(last_full_day, local_window(last_day - INTERVAL '12 hours', 86400000, 0, $zone)) AS start,
  last_full - first_date + 1 - history_days AS gap_days,
  CASE WHEN history_days >= $min_days THEN CASE WHEN last_date > last_full - 7 THEN 'ok' ELSE 'stale' END ELSE 'not enough history' END AS state,
  coalesce(counted, 0) AS counted, requests - coalesce(counted, 0) AS left_out
FROM logged
CROSS JOIN ended
LEFT JOIN counted ON logged.member = counted.member
-- step: members
WITH recent AS (
  SELECT placed.member, unnest([weekday, 7]) AS weekday, date, minute, amount,
    (arrow_cast(day_end, 'Int64') - arrow_cast(day, 'Int64')) / 60000000000 AS length
  FROM placed
  JOIN members ON placed.member = members.member
  WHERE is_full AND date > last_full - 30
    AND EXISTS (SELECT 1 FROM known WHERE known.member = placed.member AND known.date = placed.date)
),
sized AS (
-- a minute of which no tokens are known is no empty one
  SELECT member, weekday, sum(length) - sum(unknown) AS n
  FROM (SELECT member, weekday, date, max(length) AS length, count(*) - count(amount) AS unknown FROM recent GROUP BY member, weekday, date)
  GROUP BY member, weekday
),
ranked AS (
  SELECT recent.member, recent.weekday, n, amount, row_number() OVER (PARTITION BY recent.member, recent.weekday ORDER BY amount DESC) - 1 AS above
  FROM recent
  JOIN sized ON recent.member = sized.member AND recent.weekday = sized.weekday
  WHERE amount IS NOT NULL
),
spread AS (
-- from the top, as all below the minutes that are there are empty
  SELECT member, weekday
{% for percent in [50, 95, 99] %},
    coalesce(max(CASE WHEN above = (n - 1) * {{ 100 - percent }} / 100 THEN amount END), 0) AS upper_{{ percent }},
    coalesce(max(CASE WHEN above = (n - 1) * {{ 100 - percent }} / 100 + 1 THEN amount END), 0) AS lower_{{ percent }},
    max((n - 1) * {{ 100 - percent }} % 100) / 100.0 AS between_{{ percent }}
{% endfor %}
  FROM ranked
  GROUP BY member, weekday
),
listed AS (
  SELECT *, unnest([weekday, 7]) AS shown FROM known
),
usual AS (
  SELECT member, shown AS weekday, count(*) AS days, min(date) AS first_date, max(date) AS last_date,
    median(peak) AS peak, max(peak) AS max_peak, median(total) AS total
  FROM listed
  GROUP BY member, shown
),
hours AS (
  SELECT member, shown AS weekday, hour, count(*) AS hour_days,
    row_number() OVER (PARTITION BY member, shown ORDER BY count(*) DESC, sum(in_hour) DESC, hour) AS place
  FROM listed
  GROUP BY member, shown, hour
)
SELECT usual.*, hour, hour_days
{% for percent in [50, 95, 99] %},
  upper_{{ percent }} - (CAST(upper_{{ percent }} AS DOUBLE) - lower_{{ percent }}) * between_{{ percent }} AS p{{ percent }}
{% endfor %}
FROM usual
JOIN hours ON usual.member = hours.member AND usual.weekday = hours.weekday AND place = 1
LEFT JOIN spread ON usual.member = spread.member AND usual.weekday = spread.weekday
-- step: weekdays
{% if weekdays %}
WITH profiled AS (
  SELECT members.*, weekday AS number, coalesce(days, 0) AS days, weekdays.first_date AS first_seen, weekdays.last_date AS last_seen,
    total, peak, max_peak, hour, hour_days, p50, p95, p99,
    CASE WHEN weekday < 7 THEN (weekday + CASE $week_start WHEN 'sunday' THEN 1 ELSE 0 END) % 7 ELSE -1 END AS place
  FROM members
  LEFT JOIN weekdays ON members.member = weekdays.member
)
SELECT
  {{ labelled }}
  coalesce(make_array('Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday')[number + 1], 'all') AS weekday,
  state AS status, days, arrow_cast(first_seen, 'Date32') AS first_day, arrow_cast(last_seen, 'Date32') AS last_day,
  total AS median_total, peak AS median_peak, max_peak, hour AS peak_hour, hour_days,
  p50 AS p50_minute_30d, p95 AS p95_minute_30d, p99 AS p99_minute_30d,
  counted, left_out
FROM profiled
ORDER BY {{ order }}place
{% else %}
WITH compared AS (
  SELECT member, date, peak / nullif(median(peak) OVER (
    PARTITION BY member, weekday ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS ratio
  FROM known
  UNION ALL
-- what is to come is behind all days
  SELECT member, NULL, NULL FROM members
),
walked AS (
  SELECT member, date, ratio,
    count(date) OVER earlier AS days, count(ratio) OVER earlier AS n,
    array_sort(array_agg(ratio) OVER earlier, 'ASC', 'NULLS LAST') AS ratios
  FROM compared
  WINDOW earlier AS (PARTITION BY member ORDER BY date NULLS LAST ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
ranked AS (
  SELECT *, greatest(1, (n + 1) * (1 - $confidence) / 2) AS low_rank, least(n, (n + 1) * (1 + $confidence) / 2) AS high_rank FROM walked
),
banded AS (
-- of a single day there is no range
  SELECT member, date, ratio, days, n,
{% for end in ["low", "high"] %}
    CASE WHEN n >= 2 THEN ratios[CAST(floor({{ end }}_rank) AS BIGINT)]
      + (ratios[CAST(ceil({{ end }}_rank) AS BIGINT)] - ratios[CAST(floor({{ end }}_rank) AS BIGINT)]) * ({{ end }}_rank - floor({{ end }}_rank))
    END AS {{ end }}{{ "," if not loop.last }}
{% endfor %}
  FROM ranked
),
tested AS (
  SELECT banded.member,
    max(CASE WHEN date IS NULL THEN low END) AS low, max(CASE WHEN date IS NULL THEN high END) AS high,
    max(CASE WHEN date IS NULL THEN n END) AS band_days,
    median(CASE WHEN date > last_full - 7 THEN ratio END) AS recent_ratio,
    count(CASE WHEN days >= $min_days AND low IS NOT NULL THEN ratio END) AS backtest_days,
    count(CASE WHEN days >= $min_days AND ratio BETWEEN low AND high THEN ratio END) AS backtest_inside
  FROM banded
  JOIN members ON banded.member = members.member
  GROUP BY banded.member
),
ahead AS (
  SELECT *, local_window(start + arrow_cast((step * 24 + 12) * 3600000000000, 'Duration(Nanosecond)'), 86400000, 0, $zone) AS day
  FROM (SELECT *, unnest(range(1, CASE WHEN start IS NULL THEN 2 ELSE $days + 1 END)) AS step FROM members)
),
coming AS (
  SELECT *, local_part(day, 'date', $zone, $week_start) AS date, local_part(day, 'weekday', $zone, 'monday') AS weekday FROM ahead
),
expected AS (
  SELECT coming.*, low, high, band_days, recent_ratio, backtest_days, backtest_inside,
    coalesce(weekdays.days, 0) AS days, every.p99,
    CASE WHEN state <> 'ok' THEN state WHEN weekdays.days IS NULL THEN 'no such weekday' ELSE 'ok' END AS status,
    weekdays.peak, weekdays.total, weekdays.hour, weekdays.hour_days,
    coming.day + arrow_cast(weekdays.hour * 3600000000000, 'Duration(Nanosecond)') AS near
  FROM coming
  JOIN tested ON coming.member = tested.member
  LEFT JOIN weekdays ON coming.member = weekdays.member AND coming.weekday = weekdays.weekday
  LEFT JOIN weekdays AS every ON coming.member = every.member AND every.weekday = 7
)
-- so many hours after midnight another hour is shown on a day of the clock change
SELECT
  {{ labelled }}
  arrow_cast(date, 'Date32') AS day,
  make_array('Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday')[weekday + 1] AS weekday,
  status,
  CASE WHEN status = 'ok' THEN peak END AS expected_peak,
  CASE WHEN status = 'ok' THEN peak * low END AS low,
  CASE WHEN status = 'ok' THEN peak * high END AS high,
  CASE WHEN status = 'ok' THEN hour END AS peak_hour,
  CASE WHEN status = 'ok' THEN hour_days END AS hour_days,
  CASE WHEN status = 'ok' THEN local_period(near + arrow_cast((
      (date - local_part(near, 'date', $zone, $week_start)) * 24 + hour - local_part(near, 'hour', $zone, $week_start)
    ) * 3600000000000, 'Duration(Nanosecond)'), 'hour', $zone, $week_start) - arrow_cast($lead * 1000000, 'Duration(Nanosecond)')
  END AS scale_up_at,
  CASE WHEN status = 'ok' THEN total END AS expected_total,
  days, history_days, gap_days,
  CASE WHEN history_days >= $min_days THEN recent_ratio END AS recent_ratio,
  band_days, backtest_days, backtest_inside, CAST(backtest_inside AS DOUBLE) / nullif(backtest_days, 0) AS coverage,
  CASE WHEN history_days >= $min_days THEN p99 END AS p99_minute_30d,
  counted, left_out
FROM expected
ORDER BY {{ order }}step
{% endif %}
{{ limit }}
