-- title: Quota
-- question: How much of its monthly caps has each business line used, when will they be used up, and does it keep to its rate limits?
-- example: quota logs/
-- example: quota --month 2025-06 --history --tz Asia/Shanghai logs/
-- example: quota --attribute spread --quiet-days zero --since 91d logs/
-- sampled: refused
-- lookback: history
-- explode: business_line
-- param: prices book none | the price book, prices.toml; also [prices] book in the config
-- param: currency text | convert costs to this currency, by the book's dated rates
-- param: warn number 80 0..100 | from this percentage of a cap or limit on the status is warn
-- param: stale span 48h | a line whose newest record is older than this has the status stale
-- param: min_days integer 7 1..1000 | no projection from fewer complete days with use
-- param: rate_days integer 7 1..31 | the burn rate is of so many days at least: where the month has fewer, days of the four weeks before it are taken too
-- param: quiet_days choice unknown zero | what a day is on which a line has no record but another has: unknown, or known to be without use
-- param: attribute choice start end spread | rates count the tokens of a request in the minute of its arrival, in that of its end, or in all between, by time
-- param: crossings choice request minute | past crossings as the instant of the request, which reads the logs a second time, or as the start of its minute
-- param: history flag false | with --month or --since and --until, read the period before too: for medians and rates
-- param: headroom number 20 0..1000 | percentage that the proposal adds to the expected use
-- param: fail_on choice error warning never | exit with 3 where a row is at least so severe
-- column: severity | error: over; warning: warn and stale; info: the rest
-- column: business_line | the line, as a [[quota]] of the config or the logs name it
-- column: kind | tokens or cost: a cap of the local month of now, or of the end of --until if that is earlier; the others: a limit on each clock minute or hour of it
-- column: currency | of all amounts of the row; none: they are tokens or requests; unknown: none of its attempts has a price
-- column: status | the first that holds: no cap; over: used is above it; stale: newest is older than --stale; warn: share is --warn or more, or projected above the cap; no history: no projection; ok
-- column: used | of the month up to now, as far as it is known; of a limit the fullest minute or hour. 0 where only other lines have records
-- column: cap | the cap, or the limit
-- column: share ratio | used / cap
-- column: unknown attempts | attempts of the month whose tokens or cost are not known: used is without them
-- column: used_high | used, if each of these cost as much as it could; null for tokens, and where nothing bounds one of them
-- column: burn_rate per day | mean of the complete days with a record, without today: those of this month, or the last --rate-days if that is more, back to four weeks before it
-- column: rate_days days | how many days that are
-- column: rate_since | the first of them
-- column: reached % | the highest of 50, 80, 90 and 100 % that used has reached: the at_ columns above it are projected
-- column: at_* | when used reached this percentage of the cap: time of the request; projected: local midnight of the day; null: not in this month, or not known
-- column: exhausted_on | local date on which the cap is used up, past or projected; null: not in this month, or not known
-- column: projected | use of the whole month: complete days as they were; today, days to come and days that have not arrived by the median of their weekday; null if one was never seen
-- column: low | the same by first quartiles instead of medians
-- column: high | the same by third quartiles
-- column: history_days days | complete days that medians and quartiles are of
-- column: next_month | proposed cap: the medians for the weekdays of next month, and --headroom percent more
-- column: peak_at | of a limit: start of the fullest minute or hour, of equal ones the first
-- column: times_over | of a limit: minutes or hours above it
-- column: newest | newest record of the line
-- column: reason | what is missing or peculiar

{% set moment = "(CASE WHEN $until <= $now THEN arrow_cast($until, 'Timestamp(Nanosecond, Some(\"UTC\"))') - arrow_cast(1, 'Duration(Nanosecond)') ELSE $now END)" %}
{% set month = "local_period(" ~ moment ~ ", 'month', $zone, $week_start)" %}
{% set read_since = "$before" if history else "$since" %}
{% set at = "arrow_cast(slot * 60000000000, 'Timestamp(Nanosecond, Some(\"UTC\"))')" %}
{% set known_tokens = "coalesce(charge['uncached_tokens'], 0) + coalesce(charge['cached_tokens'], 0) + 
      coalesce(charge['write_5m_tokens'], 0) + coalesce(charge['write_1h_tokens'], 0) + coalesce(charge['output_tokens'], 0)" %}
{% set tokens = "CASE WHEN charge['state'] = 'free' THEN NULL
      WHEN coalesce(charge['uncached_tokens'], charge['output_tokens']) IS NULL THEN CASE WHEN charge['state'] <> 'unknown' THEN total_tokens END
      WHEN charge['uncached_tokens'] IS NULL OR charge['output_tokens'] IS NULL THEN coalesce(total_tokens, " ~ known_tokens ~ ")
      ELSE " ~ known_tokens ~ " END" %}
{% set has_tokens = "(charge['state'] IN ('free', 'priced') OR charge['uncached_tokens'] IS NOT NULL AND charge['output_tokens'] IS NOT NULL
      OR total_tokens IS NOT NULL AND (charge['state'] = 'unpriced' OR coalesce(charge['uncached_tokens'], charge['output_tokens']) IS NOT NULL))" %}
WITH priced AS (
  SELECT business_line AS line, timestamp, {{ ended }} AS ended, attempt_number, total_tokens, {{ charge_at("timestamp") }} AS charge
  FROM {{ attempts }}
),
read AS (
  SELECT priced.line, timestamp, attempt_number = 1 AS first, timestamp <= {{ moment }} AS past,
    capped.line IS NOT NULL AND timestamp >= {{ month }} AS by_minute,
    capped.line IS NOT NULL AND ended >= {{ month }} AS in_rates,
    arrow_cast(timestamp, 'Int64') AS start, arrow_cast(ended, 'Int64') AS finish,
    arrow_cast(timestamp, 'Int64') / 60000000000 AS first_minute, arrow_cast(ended, 'Int64') / 60000000000 AS last_minute,
    charge['currency'] AS currency, charge['state'] AS state, {{ tokens }} AS tokens,
    {{ has_tokens }} AS has_tokens,
    charge['cost'] AS cost, CASE WHEN charge['state'] <> 'free' THEN coalesce(charge['cost'], charge['high']) ELSE charge['cost'] END AS high
  FROM priced
  LEFT JOIN (SELECT DISTINCT line FROM quotas) AS capped ON priced.line = capped.line
),
placed AS (
-- for rates a minute, for all else a day will do
{% if attribute == "start" %}
  SELECT *, 0 AS piece, tokens AS rate_tokens,
{% else %}
  SELECT *,
    CASE WHEN pieces = 1 THEN tokens
{% if attribute == "end" %}
      WHEN piece = 1 THEN tokens
{% else %}
      WHEN piece = 0 THEN CAST(floor(CAST(tokens AS DOUBLE) * ((first_minute + 1) * 60000000000 - start) / (finish - start)) AS BIGINT)
      ELSE CASE WHEN piece = pieces - 1 THEN tokens
          ELSE CAST(floor(CAST(tokens AS DOUBLE) * ((first_minute + piece + 1) * 60000000000 - start) / (finish - start)) AS BIGINT) END
        - CAST(floor(CAST(tokens AS DOUBLE) * ((first_minute + piece) * 60000000000 - start) / (finish - start)) AS BIGINT)
{% endif %}
    END AS rate_tokens,
{% endif %}
    CASE
{% if attribute == "end" %}
      WHEN piece = 1 THEN last_minute
{% elif attribute == "spread" %}
      WHEN piece > 0 THEN first_minute + piece
{% endif %}
      WHEN NOT past THEN NULL
      WHEN by_minute THEN first_minute
      ELSE arrow_cast(local_period(timestamp, 'day', $zone, $week_start), 'Int64') / 60000000000
    END AS slot
{% if attribute == "start" %}
  FROM read
{% else %}
  FROM (
    SELECT *, unnest(range(0, pieces)) AS piece
    FROM (
      SELECT *,
        CASE WHEN in_rates AND past AND tokens IS NOT NULL AND last_minute > first_minute{{ " AND last_minute - first_minute < 1440" if attribute == "spread" }}
          THEN {{ "2" if attribute == "end" else "last_minute - first_minute + 1" }} ELSE 1 END AS pieces
      FROM read
    )
  )
{% endif %}
)
SELECT line, currency, past, slot,
  count(*) FILTER (WHERE piece = 0) AS attempts,
  count(*) FILTER (WHERE piece = 0 AND first) AS requests,
  sum(CASE WHEN piece = 0 THEN tokens END) AS tokens,
  sum(rate_tokens) AS rate_tokens,
  count(*) FILTER (WHERE piece = 0 AND NOT has_tokens) AS tokens_unknown,
  count(*) FILTER (WHERE piece = 0 AND state IN ('unknown', 'unpriced')) AS cost_unknown,
  count(*) FILTER (WHERE piece = 0 AND state = 'free') AS free,
  sum(CASE WHEN piece = 0 THEN cost END) AS cost,
  sum(CASE WHEN piece = 0 THEN high END) AS high,
  count(*) FILTER (WHERE piece = 0 AND state IN ('unknown', 'unpriced') AND high IS NULL) AS unbounded,
  max(CASE WHEN piece = 0 AND past THEN timestamp END) AS newest
FROM placed
GROUP BY line, currency, past, slot
-- step: usage
WITH months AS (
  SELECT moment, month_start, local_period(month_start + INTERVAL '32 days', 'month', $zone, $week_start) AS next_start,
    local_period(local_period(month_start + INTERVAL '32 days', 'month', $zone, $week_start) + INTERVAL '32 days', 'month', $zone, $week_start) AS next_end
  FROM (SELECT {{ moment }} AS moment, {{ month }} AS month_start)
)
SELECT *,
  local_part(moment, 'date', $zone, $week_start) AS today,
  local_part(month_start, 'date', $zone, $week_start) AS month_date,
  local_part(next_start, 'date', $zone, $week_start) AS next_date,
-- of a range that ends at midnight the last day is complete
  CASE WHEN local_window_end(moment, 86400000, 0, $zone) <= moment + arrow_cast(1, 'Duration(Nanosecond)')
    THEN local_part(moment, 'date', $zone, $week_start) ELSE local_part(moment, 'date', $zone, $week_start) - 1 END AS complete
FROM months
-- step: clock
SELECT day, local_part(day, 'date', $zone, $week_start) AS date, (local_part(day, 'date', $zone, $week_start) + 3) % 7 AS weekday,
  day >= next_start AS is_next
FROM (
-- by noon, as a day of the clock change is an hour longer or shorter
  SELECT next_start, next_end, local_period(month_start + arrow_cast((step * 24 + 12) * 3600000000000, 'Duration(Nanosecond)'), 'day', $zone, $week_start) AS day
  FROM (SELECT *, unnest(range(0, 63)) AS step FROM clock)
)
WHERE day < next_end
-- step: calendar
WITH costs AS (
  SELECT line, currency FROM usage WHERE past AND attempts > free + cost_unknown GROUP BY line, currency
),
lines AS (
  SELECT logged.line, count(costs.currency) AS currencies, min(costs.currency) AS currency
  FROM (SELECT DISTINCT line FROM usage WHERE past) AS logged
  LEFT JOIN costs ON logged.line IS NOT DISTINCT FROM costs.line
  WHERE NOT EXISTS (SELECT 1 FROM quotas WHERE quotas.line = logged.line)
  GROUP BY logged.line
),
listed AS (
  SELECT line, 1 AS kind, CAST(NULL AS VARCHAR) AS currency, CAST(tokens AS DECIMAL(38, 12)) AS cap FROM quotas WHERE tokens IS NOT NULL
  UNION ALL
  SELECT line, 2, currency, CAST(cost AS DECIMAL(38, 12)) FROM quotas WHERE cost IS NOT NULL
  UNION ALL
  SELECT line, 3, NULL, CAST(tokens_per_minute AS DECIMAL(38, 12)) FROM quotas WHERE tokens_per_minute IS NOT NULL
  UNION ALL
  SELECT line, 4, NULL, CAST(tokens_per_hour AS DECIMAL(38, 12)) FROM quotas WHERE tokens_per_hour IS NOT NULL
  UNION ALL
  SELECT line, 5, NULL, CAST(requests_per_minute AS DECIMAL(38, 12)) FROM quotas WHERE requests_per_minute IS NOT NULL
  UNION ALL
  SELECT line, 1, NULL, NULL FROM lines
  UNION ALL
  SELECT line, 2, NULL, NULL FROM lines WHERE currencies = 0
  UNION ALL
  SELECT lines.line, 2, costs.currency, NULL FROM lines JOIN costs ON lines.line IS NOT DISTINCT FROM costs.line
  UNION ALL
-- costs in another currency than that of the cap
  SELECT costs.line, 2, costs.currency, NULL FROM costs
  WHERE EXISTS (SELECT 1 FROM quotas WHERE quotas.line = costs.line AND cost IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM quotas WHERE quotas.line = costs.line AND cost IS NOT NULL AND quotas.currency = costs.currency)
),
newest AS (
  SELECT line, max(newest) AS newest, min(slot) AS oldest_slot FROM usage WHERE past GROUP BY line
),
logged AS (
  SELECT max(newest) AS newest FROM newest
)
SELECT row_number() OVER (ORDER BY listed.line NULLS LAST, kind, cap IS NULL, currency NULLS LAST, cap) AS place,
  listed.line, kind, currency, cap, newest.newest, logged.newest AS log_newest,
  local_part({{ at | replace("slot", "oldest_slot") }}, 'date', $zone, $week_start) AS first_date,
-- days behind this one have not arrived, or are not over
  least(complete, local_part({{ "logged.newest" if quiet_days == "zero" else "newest.newest" }}, 'date', $zone, $week_start)) AS closed,
  CAST(arrow_cast(moment, 'Int64') AS DOUBLE) - arrow_cast(coalesce(newest.newest, logged.newest), 'Int64') > $stale * 1e6 AS is_stale
FROM listed
CROSS JOIN logged
CROSS JOIN clock
LEFT JOIN newest ON listed.line IS NOT DISTINCT FROM newest.line
-- step: limits
-- where nothing is unknown, nothing used is 0
SELECT place, slot, local_part({{ at }}, 'date', $zone, $week_start) AS date,
  CASE WHEN unknown = 0 THEN coalesce(amount, 0) ELSE amount END AS amount, unknown, high, unbounded
FROM (
  SELECT place, slot,
    sum(CASE WHEN kind = 1 THEN CAST(tokens AS DECIMAL(38, 18)) ELSE cost END) AS amount,
    sum(CASE WHEN kind = 1 THEN tokens_unknown ELSE cost_unknown END) AS unknown,
    sum(CASE WHEN kind = 2 AND own IS NOT NULL THEN high END) AS high, sum(CASE WHEN own IS NULL THEN cost_unknown ELSE unbounded END) AS unbounded
  FROM usage
  JOIN limits ON usage.line IS NOT DISTINCT FROM limits.line
  LEFT JOIN (SELECT DISTINCT line AS owner, currency AS own FROM limits WHERE kind = 2) AS owned
    ON (usage.line IS NOT DISTINCT FROM owner) AND usage.currency = own
-- what has no price has no currency of its own: it may belong to any row
  WHERE past AND attempts > 0 AND (kind = 1 OR kind = 2 AND (usage.currency = limits.currency OR own IS NULL))
  GROUP BY place, slot
)
-- step: amounts
WITH thresholds AS (
  SELECT limits.*, percent, CAST(cap AS DECIMAL(60, 18)) * CAST(part AS DECIMAL(3, 2)) AS threshold
  FROM limits
  CROSS JOIN (VALUES (50, '0.5'), (80, '0.8'), (90, '0.9'), (100, '1')) AS parts (percent, part)
),
running AS (
  SELECT place, slot, amount, sum(amount) OVER (PARTITION BY place ORDER BY slot) AS total
  FROM amounts
  CROSS JOIN clock
  WHERE date >= month_date AND amount > 0
)
SELECT thresholds.place AS crossed_place, thresholds.line AS crossed_line, kind AS crossed_kind, currency AS crossed_currency,
  percent, threshold, slot AS crossed_slot, total - amount AS before
FROM running
JOIN thresholds ON running.place = thresholds.place
WHERE total >= threshold AND total - amount < threshold OR threshold = 0 AND total = amount
-- step: crossed
{% if crossings == "request" %}
WITH near AS (
  SELECT *
  FROM {{ attempts }}
  JOIN crossed ON business_line = crossed_line AND arrow_cast(timestamp, 'Int64') / 60000000000 = crossed_slot
  WHERE timestamp <= {{ moment }}
),
priced AS (
  SELECT timestamp, total_tokens, crossed_place, crossed_kind, crossed_currency, percent, threshold, before,
    {{ charge_at("timestamp") }} AS charge FROM near
),
valued AS (
  SELECT *, CASE WHEN crossed_kind = 1 THEN CAST({{ tokens }} AS DECIMAL(38, 18))
    WHEN charge['currency'] = crossed_currency THEN charge['cost'] END AS amount
  FROM priced
),
running AS (
  SELECT *, before + sum(amount) OVER (PARTITION BY crossed_place, percent ORDER BY timestamp RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS total
  FROM valued
)
SELECT crossed_place AS place, percent, min(timestamp) AS crossed_at
FROM running
WHERE total >= threshold AND amount > 0
GROUP BY crossed_place, percent
{% else %}
SELECT crossed_place AS place, percent, {{ at | replace("slot", "crossed_slot") }} AS crossed_at FROM crossed
{% endif %}
-- step: past
WITH days AS (
  SELECT place, date, sum(amount) AS amount, sum(unknown) AS unknown, sum(high) AS high, sum(unbounded) AS unbounded
  FROM amounts
  GROUP BY place, date
)
SELECT days.place, days.date, amount, unknown, high, unbounded, date <= closed AS is_closed, amount IS NOT NULL AS is_active
FROM days
JOIN limits ON days.place = limits.place
{% if quiet_days == "zero" %}
UNION ALL
SELECT limits.place, covered.date, CAST(0 AS DECIMAL(38, 18)), 0, CAST(0 AS DECIMAL(38, 18)), 0, true, false
FROM limits
JOIN (SELECT DISTINCT local_part({{ at }}, 'date', $zone, $week_start) AS date FROM usage WHERE past AND attempts > 0) AS covered
  ON covered.date > first_date AND covered.date <= closed
WHERE kind <= 2 AND NOT EXISTS (SELECT 1 FROM days WHERE days.place = limits.place AND days.date = covered.date)
{% endif %}
-- step: days
WITH ranked AS (
  SELECT *, (date + 3) % 7 AS weekday,
    row_number() OVER (PARTITION BY place, (date + 3) % 7 ORDER BY amount, date) - 1 AS above,
    count(*) OVER (PARTITION BY place, (date + 3) % 7) AS n
  FROM days
  WHERE is_closed AND amount IS NOT NULL
),
quartered AS (
  SELECT place, weekday, n
{% for name, quarters in [("low", 1), ("middle", 2), ("high", 3)] %},
    CAST(CAST('0.25' AS DECIMAL(2, 2)) * (
      max(CASE WHEN above = (n - 1) * {{ quarters }} / 4 THEN amount END) * (4 - (n - 1) * {{ quarters }} % 4)
      + max(CASE WHEN above = least((n - 1) * {{ quarters }} / 4 + 1, n - 1) THEN amount END) * ((n - 1) * {{ quarters }} % 4)
    ) AS DECIMAL(38, 18)) AS {{ name }}
{% endfor %}
  FROM ranked
  GROUP BY place, weekday, n
),
spread AS (
  SELECT limits.place, calendar.date, calendar.day, calendar.weekday, is_next,
{% for name in ["low", "middle", "high"] %}
-- of a day that is not over as much is known as was used so far
    CASE WHEN quartered.{{ name }} IS NOT NULL THEN greatest(quartered.{{ name }}, coalesce(days.amount, 0)) END AS {{ name }},
{% endfor %}
    middle IS NULL AS unseen
  FROM limits
  CROSS JOIN calendar
  CROSS JOIN clock
  LEFT JOIN quartered ON limits.place = quartered.place AND calendar.weekday = quartered.weekday
  LEFT JOIN days ON limits.place = days.place AND calendar.date = days.date
  WHERE kind <= 2 AND (calendar.date > closed OR closed IS NULL)
)
SELECT *,
  sum(middle) OVER (PARTITION BY place, is_next ORDER BY date) AS total,
  sum(CASE WHEN unseen THEN 1 ELSE 0 END) OVER (PARTITION BY place, is_next ORDER BY date) AS unseen_before
FROM spread
-- step: coming
WITH closed AS (
  SELECT days.place,
    sum(CASE WHEN date >= month_date AND is_active THEN amount END) AS used,
    sum(CASE WHEN date >= month_date AND is_closed THEN amount END) AS used_closed,
    CAST(coalesce(sum(CASE WHEN date >= month_date THEN unknown END), 0) AS BIGINT) AS unknown,
    sum(CASE WHEN date >= month_date THEN high END) AS high,
    coalesce(sum(CASE WHEN date >= month_date THEN unbounded END), 0) AS unbounded,
    count(CASE WHEN is_closed AND is_active THEN 1 END) AS active_days,
    count(CASE WHEN is_closed THEN amount END) AS history_days
  FROM days
  CROSS JOIN clock
  GROUP BY days.place
),
recent AS (
  SELECT days.*, month_date,
    row_number() OVER (PARTITION BY place ORDER BY date DESC) AS back,
    count(CASE WHEN date >= month_date THEN 1 END) OVER (PARTITION BY place) AS in_month
  FROM days
  CROSS JOIN clock
  WHERE is_closed AND is_active AND date >= month_date - 28
),
burnt AS (
  SELECT place, count(*) AS rate_days, min(date) AS rate_since,
    CAST(CAST(sum(amount) AS DECIMAL(76, 18)) / count(*) AS DECIMAL(38, 12)) AS burn_rate
  FROM recent
  WHERE back <= greatest(in_month, $rate_days)
  GROUP BY place
),
ahead AS (
  SELECT place,
{% for name in ["low", "middle", "high"] %}
    sum(CASE WHEN NOT is_next THEN {{ name }} END) AS {{ name }},
{% endfor %}
    sum(CASE WHEN is_next THEN middle END) AS next_month,
    count(CASE WHEN unseen AND NOT is_next THEN 1 END) AS unseen, count(CASE WHEN unseen AND is_next THEN 1 END) AS unseen_next,
    concat_ws(', '
{% for name in ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"] %}
      , max(CASE WHEN unseen AND weekday = {{ loop.index0 }} THEN '{{ name }}' END)
{% endfor %}
    ) AS weekdays
  FROM coming
  GROUP BY place
)
SELECT limits.*, active_days, coalesce(history_days, 0) AS history_days, burn_rate, rate_days, rate_since,
  CASE WHEN log_newest IS NULL OR unknown > 0 THEN used ELSE coalesce(used, 0) END AS used,
  coalesce(used_closed, 0) AS used_closed, coalesce(unknown, 0) AS unknown,
  CASE WHEN kind = 2 AND coalesce(unbounded, 0) = 0 AND log_newest IS NOT NULL THEN coalesce(closed.high, 0) END AS used_high,
  coalesce(active_days, 0) >= $min_days AND is_stale IS NOT TRUE AS is_projected,
  coalesce(unseen, 0) AS unseen, coalesce(unseen_next, 0) AS unseen_next, weekdays,
  coalesce(used_closed, 0) + coalesce(ahead.low, 0) AS low, coalesce(used_closed, 0) + coalesce(middle, 0) AS middle,
  coalesce(used_closed, 0) + coalesce(ahead.high, 0) AS high, ahead.next_month
FROM limits
LEFT JOIN closed ON limits.place = closed.place
LEFT JOIN burnt ON limits.place = burnt.place
LEFT JOIN ahead ON limits.place = ahead.place
WHERE kind <= 2
-- step: caps
WITH hours AS (
  SELECT line, slot, local_period({{ at }}, 'hour', $zone, $week_start) AS hour, rate_tokens, requests, tokens_unknown
  FROM usage
  CROSS JOIN clock
  WHERE past AND slot * 60000000000 >= arrow_cast(month_start, 'Int64') AND slot * 60000000000 <= arrow_cast(moment, 'Int64')
),
stretches AS (
  SELECT place, CASE kind WHEN 4 THEN hour ELSE {{ at }} END AS started,
    sum(CASE WHEN kind = 5 THEN requests ELSE rate_tokens END) AS amount, sum(CASE WHEN kind < 5 THEN tokens_unknown END) AS unknown
  FROM hours
  JOIN limits ON hours.line = limits.line
  WHERE kind >= 3
  GROUP BY place, started
),
ranked AS (
  SELECT *, row_number() OVER (PARTITION BY place ORDER BY amount DESC NULLS LAST, started) AS rank FROM stretches
),
fullest AS (
  SELECT ranked.place, CAST(coalesce(sum(unknown), 0) AS BIGINT) AS unknown, max(CASE WHEN rank = 1 THEN amount END) AS amount,
    max(CASE WHEN rank = 1 AND amount > 0 THEN started END) AS peak_at, count(CASE WHEN amount > cap THEN 1 END) AS times_over
  FROM ranked
  JOIN limits ON ranked.place = limits.place
  GROUP BY ranked.place
)
SELECT limits.*, coalesce(unknown, 0) AS unknown, CASE WHEN log_newest IS NULL OR unknown > 0 THEN amount ELSE coalesce(amount, 0) END AS used, peak_at,
  coalesce(times_over, 0) AS times_over
FROM limits
LEFT JOIN fullest ON limits.place = fullest.place
WHERE kind >= 3
-- step: rates
WITH undated AS (
  SELECT coalesce(sum(CASE WHEN past IS NULL THEN attempts END), 0) AS undated, coalesce(sum(CASE WHEN NOT past THEN attempts END), 0) AS later,
    coalesce(sum(CASE WHEN past THEN free END), 0) AS free
  FROM usage
),
told AS (
  SELECT 1 AS position, 'month' AS code, 'the month is ' || substr(CAST(arrow_cast(month_date, 'Date32') AS VARCHAR), 1, 7) || ' in ' || $zone
    || CASE WHEN complete = today THEN ', complete up to ' ELSE ', not complete on ' END || CAST(arrow_cast(today, 'Date32') AS VARCHAR) AS text,
    CAST(NULL AS BIGINT) AS count
  FROM clock
  UNION ALL
  SELECT 2, 'since', 'the logs are read from a time within the month on: what was used before is in no number', NULL FROM clock WHERE {{ read_since }} > month_start
  UNION ALL
  SELECT 3, 'starts', 'no record is older than the first day of the month: there may have been use before the logs begin', NULL
  FROM clock
  CROSS JOIN (SELECT min(first_date) AS first_date FROM limits) AS oldest
  WHERE first_date > month_date AND ({{ read_since }} > month_start) IS NOT TRUE
  UNION ALL
  SELECT 4, 'undated', 'attempts without a time are in no month', undated FROM undated WHERE undated > 0
  UNION ALL
  SELECT 5, 'later', 'attempts later than now are left out', later FROM undated WHERE later > 0
  UNION ALL
  SELECT 6, 'free', 'attempts are free, answered from the response cache or not billed: their tokens are not in used', free FROM undated WHERE free > 0
)
SELECT code, text, count FROM told ORDER BY position
-- step: notes
WITH thresholds AS (
  SELECT place, percent, CAST(cap AS DECIMAL(60, 18)) * CAST(part AS DECIMAL(3, 2)) AS threshold
  FROM limits
  CROSS JOIN (VALUES (50, '0.5'), (80, '0.8'), (90, '0.9'), (100, '1')) AS parts (percent, part)
),
reached AS (
  SELECT caps.place, thresholds.percent, used >= threshold AND used > 0 AS is_reached, crossed_at, expected_at, expected_date
  FROM caps
  JOIN thresholds ON caps.place = thresholds.place
  LEFT JOIN past ON thresholds.place = past.place AND thresholds.percent = past.percent
  LEFT JOIN (
    SELECT coming.place, percent, min(day) AS expected_at, min(date) AS expected_date
    FROM coming
    JOIN thresholds ON coming.place = thresholds.place
    JOIN caps ON coming.place = caps.place
    WHERE NOT is_next AND unseen_before = 0 AND is_projected AND used_closed + total >= threshold
    GROUP BY coming.place, percent
  ) AS expected ON thresholds.place = expected.place AND thresholds.percent = expected.percent
),
crossings AS (
  SELECT place, coalesce(max(CASE WHEN is_reached THEN percent END), 0) AS reached,
{% for percent in [50, 80, 90, 100] %}
    max(CASE WHEN percent = {{ percent }} THEN CASE WHEN is_reached THEN crossed_at ELSE expected_at END END) AS at_{{ percent }},
{% endfor %}
    max(CASE WHEN percent = 100 THEN CASE WHEN is_reached THEN local_part(crossed_at, 'date', $zone, $week_start) ELSE expected_date END END) AS exhausted
  FROM reached
  GROUP BY place
),
told AS (
  SELECT caps.place, line, kind, currency, cap, newest, log_newest, is_stale, closed, caps.used, unknown, used_high, burn_rate, rate_days, rate_since,
    reached, at_50, at_80, at_90, at_100, exhausted, active_days, history_days, unseen, weekdays,
    CASE WHEN is_projected AND unseen = 0 AND used IS NOT NULL THEN middle END AS projected,
    CASE WHEN is_projected AND unseen = 0 AND used IS NOT NULL THEN low END AS low,
    CASE WHEN is_projected AND unseen = 0 AND used IS NOT NULL THEN high END AS high,
    CASE WHEN is_projected AND unseen_next = 0
      THEN CAST(next_month AS DECIMAL(60, 18)) * CAST((100 + $headroom) / 100 AS DECIMAL(9, 5)) END AS next_month,
    CAST(NULL AS TIMESTAMP) AS peak_at, CAST(NULL AS BIGINT) AS times_over
  FROM caps
  LEFT JOIN crossings ON caps.place = crossings.place
  UNION ALL
  SELECT place, line, kind, currency, cap, newest, log_newest, is_stale, closed, used, unknown, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, peak_at, times_over
  FROM rates
),
judged AS (
  SELECT told.*, complete, month_date,
    CASE
      WHEN cap IS NULL THEN 'no cap'
      WHEN CAST(used AS DECIMAL(60, 18)) > CAST(cap AS DECIMAL(60, 18)) THEN 'over'
      WHEN is_stale THEN 'stale'
      WHEN CAST(used AS DECIMAL(60, 18)) * 100 >= CAST(cap AS DECIMAL(60, 18)) * CAST($warn AS DECIMAL(6, 3)) AND used > 0
        OR CAST(projected AS DECIMAL(60, 18)) > CAST(cap AS DECIMAL(60, 18)) THEN 'warn'
      WHEN newest IS NULL OR kind <= 2 AND projected IS NULL THEN 'no history'
      ELSE 'ok'
    END AS status
  FROM told
  CROSS JOIN clock
)
SELECT
  CASE status WHEN 'over' THEN 'error' WHEN 'warn' THEN 'warning' WHEN 'stale' THEN 'warning' ELSE 'info' END AS severity,
  line AS business_line,
  CASE kind WHEN 1 THEN 'tokens' WHEN 2 THEN 'cost' WHEN 3 THEN 'tokens per minute' WHEN 4 THEN 'tokens per hour' ELSE 'requests per minute' END AS kind,
  CASE WHEN kind = 2 THEN currency ELSE 'none' END AS currency, status,
  CAST(used AS DECIMAL(38, 12)) AS used, cap, CAST(used AS DOUBLE) / nullif(CAST(cap AS DOUBLE), 0) AS share,
  unknown, CAST(used_high AS DECIMAL(38, 12)) AS used_high,
  burn_rate, rate_days, arrow_cast(rate_since, 'Date32') AS rate_since,
  CASE WHEN cap IS NOT NULL THEN reached END AS reached, at_50, at_80, at_90, at_100, arrow_cast(exhausted, 'Date32') AS exhausted_on,
  CAST(projected AS DECIMAL(38, 12)) AS projected, CAST(low AS DECIMAL(38, 12)) AS low, CAST(high AS DECIMAL(38, 12)) AS high,
  history_days, CAST(next_month AS DECIMAL(38, 12)) AS next_month,
  peak_at, times_over, newest,
  coalesce(nullif(concat_ws('; ',
    CASE WHEN log_newest IS NULL THEN 'no record at all up to now: nothing is known' WHEN newest IS NULL THEN 'no record of this line: nothing was used' END,
    CASE WHEN cap IS NULL THEN 'no cap' || CASE WHEN kind = 2 AND currency IS NOT NULL THEN ' in ' || currency ELSE '' END || ' in the config' END,
    CASE WHEN is_stale THEN 'nothing newer than ' || CAST(arrow_cast(local_part(coalesce(newest, log_newest), 'date', $zone, $week_start), 'Date32') AS VARCHAR)
      || CASE WHEN log_newest > newest THEN ' of this line' ELSE '' END || ': no projection' END,
    CASE WHEN projected IS NOT NULL AND closed < complete
      THEN 'nothing after ' || CAST(arrow_cast(closed, 'Date32') AS VARCHAR) || ' has arrived: the days since are projected too' END,
    CASE WHEN kind <= 2 AND newest IS NOT NULL AND is_stale IS NOT TRUE AND active_days < $min_days
      THEN 'complete days with a record: ' || CAST(active_days AS VARCHAR) || ' of the ' || CAST($min_days AS VARCHAR) || ' that a projection needs' END,
    CASE WHEN kind <= 2 AND is_stale IS NOT TRUE AND active_days >= $min_days AND weekdays <> ''
      THEN 'no complete ' || weekdays || ' in the history: nothing is known of such days' END,
    CASE WHEN unknown > 0 THEN 'used is without attempts whose ' || CASE kind WHEN 2 THEN 'cost is' ELSE 'tokens are' END
      || ' not known: ' || CAST(unknown AS VARCHAR)
      || CASE WHEN status <> 'over' AND CAST(used_high AS DECIMAL(60, 18)) > CAST(cap AS DECIMAL(60, 18)) THEN ', with them it may be above the cap' ELSE '' END END
  ), ''), 'none') AS reason
FROM judged
ORDER BY {{ order }}place
{{ limit }}
