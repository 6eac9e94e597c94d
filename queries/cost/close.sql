-- title: Close
-- question: What did the month cost, by business line, model and price, to be stored so that it never changes?
-- example: cost close --month 2025-06 --format json -o 2025-06.json logs/
-- sampled: refused
-- whole: months
-- keeps: file
-- param: prices book | the price book, prices.toml; also [prices] book in the config
-- param: currency text | convert all to this currency, by the dated rates of the price book
-- column: month | the local month
-- column: zone | the zone whose months these are
-- column: business_line | who owes it; null where the log names none
-- column: model | the model as it was called
-- column: state | priced; free: costs nothing, as an answer from the response cache; unknown: usage is missing or cannot be; unpriced: the book has no price
-- column: reason | why it is not priced
-- column: rule | which price, and how it matched
-- column: currency | currency of the price
-- column: requests requests | requests, each counted at its first attempt
-- column: attempts attempts | upstream calls
-- column: uncached_tokens tokens | input tokens that were neither read from a cache nor written to one; null where none is known
-- column: cached_tokens tokens | input tokens read from a cache
-- column: write_5m_tokens tokens | input tokens written to a cache
-- column: write_1h_tokens tokens | input tokens written to a cache for an hour
-- column: output_tokens tokens | generated tokens, reasoning included
-- column: input_cost | of the cost, that of the uncached tokens
-- column: cached_cost | that of the cached tokens
-- column: write_cost | that of the written tokens
-- column: output_cost | that of the output
-- column: request_cost | fees per request
-- column: cost | every decimal kept; null where nobody knows it, never 0
-- column: low | at least so much
-- column: high | at most so much; null where nothing bounds it
-- column: book | name and hash of the price book
-- explode: business_line
-- total: requests attempts cost
WITH read AS (
  SELECT local_period(timestamp, 'month', $zone, $week_start) AS started, business_line, model_name, attempt_number,
    {{ charge_at("timestamp") }} AS charge
  FROM {{ attempts }}
)
SELECT started, business_line, model_name, charge['state'] AS state, charge['reason'] AS reason, charge['rule'] AS rule, charge['currency'] AS currency,
  count(*) FILTER (WHERE attempt_number = 1) AS requests, count(*) AS attempts,
{% for class in ["uncached", "cached", "write_5m", "write_1h", "output"] %}
  sum(charge['{{ class }}_tokens']) AS {{ class }}_tokens,
{% endfor %}
{% for part in ["input", "cached", "write", "output", "request"] %}
  sum(charge['{{ part }}_cost']) FILTER (WHERE charge['cost'] IS NOT NULL) AS {{ part }}_cost,
{% endfor %}
  sum(charge['cost']) AS cost, sum(charge['low']) AS low, CASE WHEN count(charge['high']) = count(*) THEN sum(charge['high']) END AS high
FROM read
GROUP BY started, business_line, model_name, charge['state'], charge['reason'], charge['rule'], charge['currency']
-- step: groups
{% macro money(amount) -%}
rtrim(rtrim(CAST(CAST({{ amount }} AS DECIMAL(38, 6)) AS VARCHAR), '0'), '.')
{%- endmacro %}
WITH bounds AS (
  SELECT min(started) AS first, local_period(max(started) + arrow_cast(2764800000000000, 'Duration(Nanosecond)'), 'month', $zone, $week_start) AS ended FROM groups
),
found AS (
  SELECT 1 AS place, '' AS part, 'open_month' AS code, NULL AS count, 'the month is not over: what is stored now will differ from what it comes to' AS text
  FROM bounds WHERE ended > $now
  UNION ALL
  SELECT 2, '', 'part_of_month', NULL, 'the time range is not of whole months: only a part of the month is stored'
  FROM bounds WHERE coalesce($since > first, false) OR coalesce($until < ended, false)
  UNION ALL
  SELECT 3, '', 'no_month', CAST(sum(attempts) AS BIGINT), 'attempts have no time and stand in a row without a month' FROM groups WHERE started IS NULL HAVING count(*) > 0
  UNION ALL
  SELECT 4, state || ', ' || coalesce(reason, '') || ', ' || coalesce(currency, ''), state, CAST(sum(attempts) AS BIGINT),
    'attempts are stored without a cost: ' || coalesce(reason, 'no reason') || '; '
    || CASE WHEN count(high) = count(*) THEN coalesce({{ money("sum(low)") }}, '0') || ' to ' || {{ money("sum(high)") }}
      ELSE 'at least ' || coalesce({{ money("sum(low)") }}, '0') END || coalesce(' ' || currency, '')
  FROM groups WHERE state IN ('unknown', 'unpriced') GROUP BY state, reason, currency
)
SELECT code, text, count FROM found ORDER BY place, part
-- step: notes
SELECT substr(CAST(arrow_cast(local_part(started, 'date', $zone, $week_start), 'Date32') AS VARCHAR), 1, 7) AS month, $zone AS zone,
  business_line, model_name AS model, state, reason, rule, currency, requests, attempts,
  uncached_tokens, cached_tokens, write_5m_tokens, write_1h_tokens, output_tokens,
  input_cost, cached_cost, write_cost, output_cost, request_cost, cost, low, high, CAST($book AS VARCHAR) AS book
FROM groups
ORDER BY {{ sort }}started NULLS LAST, business_line NULLS LAST, model_name NULLS LAST, state, reason NULLS LAST, rule NULLS LAST, currency NULLS LAST
{{ limit }}
