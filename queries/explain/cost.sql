-- title: Explain a cost
-- question: What is behind a figure of the report `cost`: which prices, which attempts, which are left out, and which requests are the largest?
-- example: explain cost --month 2025-06 --line finance_ai --column cost logs/
-- example: explain cost --line search --column output_tokens --month 2025-06 logs/
-- sampled: refused
-- param: column choice cost requests attempts failed uncached_tokens cached_tokens cache_write_tokens output_tokens reasoning_tokens gpu_seconds | the column of `cost` to explain
-- param: line text | the business line of the row; unknown: the row without one; all lines where it is not given
-- param: prices book | the price book, prices.toml; also [prices] book in the config
-- param: currency text | convert to this currency by the dated rates of the price book
-- param: largest integer 5 0..1000 | how many of the largest to show
-- column: part | formula; figure: what `cost` shows; used: what it is made of, which adds up to it; left out: attempts that are not in it, and why; largest, first, last: attempts behind it
-- column: item | what is computed; which price and how it matched, or why there is none
-- column: class | class of tokens
-- column: attempts attempts | upstream calls
-- column: tokens tokens | tokens of that class; of all classes where none is named
-- column: per_million | value for 1,000,000 tokens, or for each attempt that paid a fee: the price, or what several prices come to, as those of long prompts
-- column: value | part of the figure
-- column: low | what is left out would have cost at least so much
-- column: high | at most so much; null where nothing bounds it
-- column: currency | the currency of all money in the row
-- column: request_id | the request
-- column: attempt | which of its attempts
-- column: timestamp | when it began
-- column: model | the model as it was called
-- place: place
-- column: place | file and line of its record
{% set is_cost = column == "cost" %}
{% set formulas = {
  "cost": "tokens of each class x their price + fee of the request, of all attempts; what is free costs 0",
  "requests": "requests, each counted once, with its first attempt", "attempts": "upstream calls: retries and fallbacks count, duplicate records do not",
  "failed": "requests whose last attempt failed", "uncached_tokens": "sum of input tokens - tokens read from a cache - tokens written to one",
  "cached_tokens": "sum of input tokens read from a cache", "cache_write_tokens": "sum of tokens written to a cache", "output_tokens": "sum of output tokens, reasoning included",
  "reasoning_tokens": "sum of reasoning tokens, which are inside the output", "gpu_seconds": "sum of (prefill time + decode time) / batch size"} %}
{% set values = {
  "cost": "charge['cost']", "requests": "CASE WHEN attempt_number = 1 THEN CAST(1 AS BIGINT) END", "attempts": "CAST(1 AS BIGINT)",
  "failed": "CASE WHEN attempt_number = attempts AND failed THEN CAST(1 AS BIGINT) END", "uncached_tokens": "charge['uncached_tokens']", "cached_tokens": "charge['cached_tokens']",
  "cache_write_tokens": "coalesce(charge['write_5m_tokens'] + charge['write_1h_tokens'], charge['write_5m_tokens'], charge['write_1h_tokens'])", "output_tokens": "charge['output_tokens']",
  "reasoning_tokens": "CASE WHEN reasoning_tokens BETWEEN 0 AND 1000000000 THEN reasoning_tokens END",
  "gpu_seconds": "CASE WHEN prefill_time_ms >= 0 AND decode_time_ms >= 0 AND batch_size > 0 THEN (prefill_time_ms + decode_time_ms) / batch_size / 1000 END"} %}
{% set causes = {
  "requests": "'a later attempt of its request'", "attempts": "''",
  "failed": "CASE WHEN attempt_number < attempts THEN 'not the last attempt of its request' WHEN failed IS NULL THEN 'it is not known whether it failed' ELSE 'did not fail' END",
  "gpu_seconds": "'prefill time, decode time or batch size is missing'"} %}
{% set sum = "exact_sum" if column == "gpu_seconds" else "sum" %}
{% set null_value = "CAST(NULL AS DECIMAL(38, 18))" if is_cost else "CAST(NULL AS DOUBLE)" if column == "gpu_seconds" else "CAST(NULL AS BIGINT)" %}
{% set classes = ["input", "cached input", "cache write, 5 minutes", "cache write, 1 hour", "cache write, 5 minutes and 1 hour", "output", "request fee"] %}
{% macro source() %}
  SELECT request_id, attempt_number, timestamp, model_name, source_file, source_offset, charge,
    charge['state'] AS state, charge['reason'] AS reason, CASE WHEN charge['state'] = 'priced' THEN charge['rule'] END AS rule, {{ "charge['currency']" if is_cost else "CAST(NULL AS VARCHAR)" }} AS currency,
    coalesce(charge['uncached_tokens'], 0) + coalesce(charge['cached_tokens'], 0) + coalesce(charge['write_5m_tokens'], 0) + coalesce(charge['write_1h_tokens'], 0) + coalesce(charge['output_tokens'], 0) AS tokens,
    {{ values[column] }} AS value, {{ causes[column] if column in causes else "coalesce(charge['reason'], 'not known')" }} AS cause
  FROM (SELECT *, {{ charge_at("timestamp") }} AS charge FROM {{ attempts }}) AS charged
  WHERE $line IS NULL OR business_line = $line OR ($line = 'unknown' AND business_line IS NULL)
{% endmacro %}
WITH read AS (
{{ source() }}
)
SELECT state, reason, rule, currency, CASE WHEN value IS NULL THEN cause END AS cause,
  count(*) AS attempts, count(value) AS used, {{ sum }}(value) AS value,
  sum(tokens) AS tokens, sum(charge['low']) AS low, CASE WHEN count(charge['high']) = count(*) THEN sum(charge['high']) END AS high,
{% if is_cost %}
  sum(charge['uncached_tokens']) AS tokens_1, sum(charge['input_cost']) AS value_1, count(*) FILTER (WHERE charge['uncached_tokens'] > 0) AS attempts_1,
  sum(charge['cached_tokens']) AS tokens_2, sum(charge['cached_cost']) AS value_2, count(*) FILTER (WHERE charge['cached_tokens'] > 0) AS attempts_2,
{% for kind in ["charge['write_5m_tokens'] > 0 AND charge['write_1h_tokens'] = 0", "charge['write_5m_tokens'] = 0 AND charge['write_1h_tokens'] > 0", "charge['write_5m_tokens'] > 0 AND charge['write_1h_tokens'] > 0"] %}
  sum(charge['write_5m_tokens'] + charge['write_1h_tokens']) FILTER (WHERE {{ kind }}) AS tokens_{{ loop.index + 2 }},
  sum(charge['write_cost']) FILTER (WHERE {{ kind }}) AS value_{{ loop.index + 2 }}, count(*) FILTER (WHERE {{ kind }}) AS attempts_{{ loop.index + 2 }},
{% endfor %}
  sum(charge['output_tokens']) AS tokens_6, sum(charge['output_cost']) AS value_6, count(*) FILTER (WHERE charge['output_tokens'] > 0) AS attempts_6,
  sum(charge['request_cost']) AS value_7, count(*) FILTER (WHERE charge['request_cost'] <> 0) AS attempts_7,
{% endif %}
{% for end in ["first", "last"] %}
  first_value(named_struct('request_id', request_id, 'attempt', attempt_number, 'timestamp', timestamp, 'model', model_name, 'tokens', tokens, 'value', value, 'file', source_file, 'byte', source_offset)
    ORDER BY timestamp {{ "DESC" if end == "last" }} NULLS LAST, request_id, attempt_number, source_file, source_offset) FILTER (WHERE value IS NOT NULL) AS {{ end }}{{ "" if loop.last else "," }}
{% endfor %}
FROM read
GROUP BY state, reason, rule, currency, CASE WHEN value IS NULL THEN cause END
-- step: groups
WITH read AS (
{{ source() }}
)
SELECT request_id, attempt_number, timestamp, model_name, tokens, value, currency, CASE state WHEN 'priced' THEN rule ELSE state || coalesce(': ' || reason, '') END AS item, source_file, source_offset
FROM read
WHERE value IS NOT NULL
ORDER BY value DESC, tokens DESC, timestamp, request_id, attempt_number, source_file, source_offset
LIMIT $largest
-- step: largest
{% set nothing = {"tokens": "CAST(NULL AS BIGINT)", "money": "CAST(NULL AS DECIMAL(38, 18))", "text": "CAST(NULL AS VARCHAR)", "time": "arrow_cast(NULL, 'Timestamp(Nanosecond, Some(\"UTC\"))')"} %}
{% set nobody = "CAST(NULL AS VARCHAR) AS request_id, CAST(NULL AS BIGINT) AS attempt, " ~ nothing.time ~ " AS timestamp, CAST(NULL AS VARCHAR) AS model, CAST(NULL AS VARCHAR) AS place" %}
WITH parts AS (
  SELECT 1 AS position, 'formula' AS part, '{{ formulas[column] | replace("'", "''") }}' AS item, {{ nothing.text }} AS class, CAST(NULL AS BIGINT) AS attempts, {{ nothing.tokens }} AS tokens,
    {{ nothing.money }} AS per_million, {{ null_value }} AS value, {{ nothing.money }} AS low, {{ nothing.money }} AS high, {{ nothing.text }} AS currency, {{ nobody }}, CAST(0 AS BIGINT) AS place_in_part
  UNION ALL
  SELECT 2, 'figure', '{{ column }}' || coalesce(' of ' || $line, ''), NULL, CAST(sum(used) AS BIGINT), CAST(sum(tokens) FILTER (WHERE used > 0) AS BIGINT), NULL, {{ "coalesce(sum(value), 0)" if column in ["requests", "attempts", "failed"] else sum ~ "(value)" }}, NULL, NULL, currency,
    NULL, NULL, NULL, NULL, NULL, 0
  FROM groups GROUP BY currency{{ " HAVING sum(used) > 0 OR (SELECT sum(used) FROM groups) = 0" if is_cost }}
  UNION ALL
{% if is_cost %}
  SELECT 3, 'used', CASE state WHEN 'priced' THEN rule ELSE state || coalesce(': ' || reason, '') END, class, calls, CASE WHEN number < 7 THEN quantity END,
    CASE WHEN quantity > 0 THEN CAST(CASE WHEN number < 7 THEN amount / CAST(quantity AS DECIMAL(20, 0)) * CAST(1000000 AS DECIMAL(7, 0)) ELSE amount / CAST(quantity AS DECIMAL(20, 0)) END AS DECIMAL(38, 18)) END,
    amount, NULL, NULL, currency, NULL, NULL, NULL, NULL, NULL, number
  FROM (
    SELECT *, CASE number {% for class in classes %}WHEN {{ loop.index }} THEN {{ "attempts_7" if loop.last else "tokens_" ~ loop.index }} {% endfor %}END AS quantity,
      CASE number {% for class in classes %}WHEN {{ loop.index }} THEN value_{{ loop.index }} {% endfor %}END AS amount,
      CASE number {% for class in classes %}WHEN {{ loop.index }} THEN attempts_{{ loop.index }} {% endfor %}END AS calls
    FROM groups
    CROSS JOIN (VALUES {% for class in classes %}({{ loop.index }}, '{{ class }}'){{ "" if loop.last else ", " }}{% endfor %}) AS listed (number, class)
    WHERE used > 0) AS split
  WHERE calls > 0 OR amount <> 0
{% else %}
  SELECT 3, 'used', CASE state WHEN 'priced' THEN rule ELSE state || coalesce(': ' || reason, '') END, NULL, used, tokens, NULL, value, NULL, NULL, currency, NULL, NULL, NULL, NULL, NULL, 0
  FROM groups WHERE used > 0
{% endif %}
  UNION ALL
  SELECT 4, 'left out', {{ "state || coalesce(': ' || cause, '')" if is_cost else "cause" }}, NULL, CAST(sum(attempts) AS BIGINT), CAST(sum(tokens) AS BIGINT), NULL, NULL,
    {{ "sum(low), CASE WHEN count(high) = count(*) THEN sum(high) END" if is_cost else "NULL, NULL" }}, currency, NULL, NULL, NULL, NULL, NULL, 0
  FROM groups WHERE used = 0 GROUP BY {{ "state || coalesce(': ' || cause, '')" if is_cost else "cause" }}, currency
  UNION ALL
  SELECT 5, 'largest', item, NULL, 1, tokens, NULL, value, NULL, NULL, currency, request_id, attempt_number, timestamp, model_name,
    source_file || coalesce(', byte ' || CAST(source_offset AS VARCHAR), ''), row_number() OVER (ORDER BY value DESC, tokens DESC, timestamp, request_id, attempt_number, source_file, source_offset)
  FROM largest
{% for end in ["first", "last"] %}
  UNION ALL
  SELECT {{ 5 + loop.index }}, '{{ end }}', item, NULL, 1, one['tokens'], NULL, one['value'], NULL, NULL, currency, one['request_id'], one['attempt'], one['timestamp'], one['model'],
    one['file'] || coalesce(', byte ' || CAST(one['byte'] AS VARCHAR), ''), 0
  FROM (
    SELECT CASE state WHEN 'priced' THEN rule ELSE state || coalesce(': ' || reason, '') END AS item, currency, {{ end }} AS one FROM groups WHERE used > 0
    ORDER BY {{ end }}['timestamp'] {{ "DESC" if end == "last" }} NULLS LAST, {{ end }}['request_id'], {{ end }}['attempt'], {{ end }}['file'], {{ end }}['byte']
    LIMIT 1) AS {{ end }}_one
{% endfor %}
)
SELECT part, item, {{ "class, " if is_cost }}attempts, tokens, {{ "per_million, " if is_cost }}value, {{ "low, high, currency, " if is_cost }}request_id, attempt, timestamp, model, place
FROM parts
ORDER BY {{ sort }}position, CASE part WHEN 'largest' THEN place_in_part END, currency NULLS LAST, {{ "" if is_cost else "value DESC NULLS LAST, " }}item NULLS LAST, place_in_part
{{ limit }}
