-- title: Allocation
-- question: Who pays for what: the use of each business line, GPUs that stood idle, and costs that all share?
-- example: allocate --month 2025-06 --prices prices.toml logs/
-- example: allocate --month 2025-06 --method gpu-time --idle spread --share spread --prices prices.toml logs/
-- param: by dimensions business-line | what to group by
-- param: method choice tokens logged gpu-time | direct cost: tokens at list price, the cost that the log names, or what the GPU pools cost, by GPU seconds
-- param: idle choice rows spread | with gpu-time: idle GPUs in a row for each pool, or spread over those who used the pool, by GPU seconds
-- param: share choice rows spread | shared costs in rows of their own, or spread over the business lines, each by its method, to the cent; only where business-line is the only dimension
-- param: places integer 12 0..12 | round money to so many decimals, by largest remainder: the rows add up to the rounded total
-- param: prices book | the price book, prices.toml; also [prices] book in the config
-- param: currency text | convert token costs to this currency by the dated rates of the price book; pools and shared costs stay in their own
-- column: item | requests; idle: GPUs of a pool while nobody used them; shared: a cost of [[allocation.shared]]; unallocated: of such a cost what its method gives to nobody. The pool or cost is named in place of the business line, or behind the item where there are other dimensions
-- column: requests requests | requests; each is counted once, with its first attempt
-- column: attempts attempts | calls that the requests took
-- column: without_cost attempts | of them those whose direct cost is not known: see `cost`; with gpu-time those without GPU seconds, without a pool, or of a pool whose cost is not known
-- column: gpu_seconds s | (prefill + decode time) / batch size, of the attempts that log all three; null when none does
-- column: direct_cost | cost of the attempts; with gpu-time their part of what the pool cost: its bill of the month, else gpus x hours x gpu_hour
-- column: idle_cost | their part of idle GPUs
-- column: shared_cost | their part of the shared costs
-- column: cost | all of the row
-- column: currency | the currency of all money in the row; different ones are never added
-- column: share ratio | cost / cost of all rows of that currency, to the sixth decimal by largest remainder, or where some of it are credits as it comes
-- total: cost requests attempts without_cost direct_cost idle_cost shared_cost

{% set by_line = dimensions | length == 1 and dimensions[0].value == '"business_line"' %}
{% set cost = "name, method, currency, since, whole, copy" %}
{% set spreads = share == "spread" and by_line %}
{% macro nothing() %}{% for dimension in dimensions %}NULL, {% endfor %}{% endmacro %}
{% macro ns(time) %}CAST(arrow_cast({{ time }}, 'Int64') AS DECIMAL(20, 0)){% endmacro %}
{% macro date(time) %}CAST(arrow_cast(local_part({{ time }}, 'date', $zone, $week_start), 'Date32') AS VARCHAR){% endmacro %}
{% macro days(count) %}arrow_cast({{ count }} * 86400000000000, 'Duration(Nanosecond)'){% endmacro %}
{% macro rounded(amount) %}CAST(CAST({{ amount }} AS DECIMAL(38, {{ places }})) AS DECIMAL(38, 12)){% endmacro %}
{% macro fraction(amount, part, of) %}CAST({{ amount }} AS DECIMAL(76, 12)) * CAST({{ part }} AS DECIMAL(76, 9)) / CAST({{ of }} AS DECIMAL(76, 9)){% endmacro %}
WITH read AS (
  SELECT
    {{ keyed }}
    timestamp, attempt_number,
    CASE WHEN prefill_time_ms >= 0 AND decode_time_ms >= 0 AND prefill_time_ms + decode_time_ms < 1e12 AND batch_size > 0
      THEN (prefill_time_ms + decode_time_ms) / batch_size / 1000 END AS gpu_seconds,
{% if method == "gpu-time" %}
    gpu_pool AS pool
{% elif method == "logged" %}
    TRY_CAST(cost_logged AS DECIMAL(38, 18)) AS cost, upper(currency) AS currency, cost_logged IS NOT NULL AS is_priced
{% else %}
    {{ charge_at("timestamp") }} AS charge
{% endif %}
  FROM {{ attempts }}
),
charged AS (
  SELECT *{{ ", charge['cost'] AS cost, charge['currency'] AS currency, charge['state'] = 'priced' AS is_priced" if method == "tokens" }} FROM read
)
SELECT
  {{ keys }}
{% if method == "gpu-time" %}
  pool,
{% else %}
  currency, count(*) FILTER (WHERE cost IS NULL) AS without_cost,
-- that of free attempts alone says nothing where others are not known
  CASE WHEN count(*) FILTER (WHERE is_priced) > 0 OR count(cost) = count(*) THEN sum(cost) END AS cost,
{% endif %}
  count(*) FILTER (WHERE attempt_number = 1) AS requests,
  count(*) AS attempts,
  exact_sum(gpu_seconds) AS gpu_seconds, count(gpu_seconds) AS gpu_known,
  min(timestamp) AS first, max(timestamp) AS last
FROM charged
GROUP BY {{ keys }}{{ "pool" if method == "gpu-time" else "currency" }}
-- step: usage
-- without a range, the whole months that the attempts fall into
SELECT coalesce($since, local_period(min(first), 'month', $zone, $week_start)) AS since,
  coalesce($until, local_period(local_period(max(last), 'month', $zone, $week_start) + {{ days(32) }}, 'month', $zone, $week_start)) AS until
FROM usage
-- step: span
WITH days AS (
  SELECT {{ ns("since") }} AS first, unnest(range(0, CAST(({{ ns("until") }} - {{ ns("since") }}) / 86400000000000 AS BIGINT) + 2)) AS day FROM span WHERE since < until
),
starts AS (
  SELECT DISTINCT local_period(arrow_cast(CAST(first + CAST(day AS DECIMAL(20, 0)) * 86400000000000 AS BIGINT), 'Timestamp(Nanosecond, Some("UTC"))'), 'month', $zone, $week_start) AS since
  FROM days
),
months AS (
  SELECT since, local_period(since + {{ days(32) }}, 'month', $zone, $week_start) AS until FROM starts
),
dated AS (
-- a cost without a month is owed in every month
  SELECT name, method, line, percent, currency, amount, since, until FROM shared_costs WHERE since IS NOT NULL
  UNION ALL
  SELECT name, method, line, percent, currency, amount, months.since, months.until FROM shared_costs CROSS JOIN months WHERE shared_costs.since IS NULL
),
clipped AS (
  SELECT dated.*, {{ ns("dated.until") }} - {{ ns("dated.since") }} AS length,
    least({{ ns("dated.until") }}, {{ ns("span.until") }}) - greatest({{ ns("dated.since") }}, {{ ns("span.since") }}) AS inside
  FROM dated
  CROSS JOIN span
)
-- two costs may be alike; a cost with percentages has a row for each line
SELECT name, method, line, percent, currency, since, amount AS whole,
  row_number() OVER (PARTITION BY name, method, currency, since, amount, line ORDER BY percent) AS copy,
  {{ rounded(fraction("amount", "inside", "length")) }} AS amount
FROM clipped
WHERE inside > 0
-- step: shares
{% if method == "gpu-time" %}
WITH clipped AS (
  SELECT pools.*, greatest(coalesce({{ ns("pools.since") }}, {{ ns("span.since") }}), {{ ns("span.since") }}) AS starts,
    least(coalesce({{ ns("pools.until") }}, {{ ns("span.until") }}), {{ ns("span.until") }}) AS ends
  FROM pools
  CROSS JOIN span
),
eras AS (
  SELECT *, ends - starts AS length FROM clipped WHERE starts < ends
),
bills AS (
  SELECT pool_bills.*, {{ ns("pool_bills.until") }} - {{ ns("pool_bills.since") }} AS length,
    greatest({{ ns("pool_bills.since") }}, {{ ns("span.since") }}) AS starts, least({{ ns("pool_bills.until") }}, {{ ns("span.until") }}) AS ends
  FROM pool_bills
  CROSS JOIN span
),
billed AS (
-- how much of each era has a bill
  SELECT eras.pool, eras.starts, sum(greatest(0, least(eras.ends, bills.ends) - greatest(eras.starts, bills.starts))) AS length
  FROM eras
  JOIN bills ON eras.pool = bills.pool
  GROUP BY eras.pool, eras.starts
),
amounts AS (
  SELECT pool, currency, {{ fraction("amount", "ends - starts", "length") }} AS amount FROM bills WHERE starts < ends
  UNION ALL
  SELECT eras.pool, currency, {{ fraction("gpus * gpu_hour", "eras.length - coalesce(billed.length, 0)", "3600000000000") }}
  FROM eras
  LEFT JOIN billed ON eras.pool = billed.pool AND eras.starts = billed.starts
  WHERE eras.length > coalesce(billed.length, 0)
),
paid AS (
  SELECT pool, currency, {{ rounded("sum(amount)") }} AS amount, count(*) > count(amount) AS is_partly FROM amounts GROUP BY pool, currency
),
sizes AS (
  SELECT pool, CASE WHEN count(*) = count(gpus) THEN sum(CAST(gpus AS DECIMAL(38, 9)) * length / 1000000000) END AS seconds FROM eras GROUP BY pool
),
used AS (
  SELECT pool, TRY_CAST(exact_sum(gpu_seconds) AS DECIMAL(38, 9)) AS seconds FROM usage GROUP BY pool
),
halved AS (
  SELECT paid.*, sizes.seconds AS size, coalesce(used.seconds, 0) AS used, row_number() OVER (PARTITION BY paid.pool ORDER BY paid.currency) AS place
  FROM paid
  LEFT JOIN sizes ON paid.pool = sizes.pool
  LEFT JOIN used ON paid.pool = used.pool
)
SELECT *, CASE WHEN used = 0 THEN amount WHEN size > used THEN {{ rounded(fraction("amount", "size - used", "size")) }} ELSE 0 END AS idle FROM halved
-- step: pool_costs
{% endif %}
{% if method == "gpu-time" %}
WITH placed AS (
  SELECT {{ keys }}usage.pool, currency, place, amount, idle, gpu_known, requests, attempts, gpu_seconds, TRY_CAST(gpu_seconds AS DECIMAL(38, 9)) AS weight
  FROM usage
  LEFT JOIN pool_costs ON usage.pool = pool_costs.pool
),
parts AS (
-- a pool that was paid in two currencies is counted in the first
  SELECT {{ keys }}currency,
    CASE WHEN place > 1 THEN 0 ELSE requests END AS requests, CASE WHEN place > 1 THEN 0 ELSE attempts END AS attempts,
    CASE WHEN place > 1 THEN 0 WHEN amount IS NULL THEN attempts ELSE attempts - gpu_known END AS without_cost,
    CASE WHEN place > 1 THEN NULL ELSE gpu_seconds END AS gpu_seconds,
    CASE WHEN weight > 0 THEN apportion(amount - idle, weight, $places) OVER users END AS direct_cost,
    {{ "CASE WHEN weight > 0 THEN apportion(idle, weight, $places) OVER users END" if idle == "spread" else "CAST(NULL AS DECIMAL(38, 12))" }} AS idle_cost
  FROM placed
  WINDOW users AS (PARTITION BY pool, currency ORDER BY {{ keys }}place)
),
{% else %}
WITH totalled AS (
-- a logged cost may be a credit, but no weight is below 0
  SELECT *, sum(cost) OVER side AS total, count(cost) OVER side AS costs, least(0, floor(min(cost) OVER side)) AS base
  FROM usage
  WINDOW side AS (PARTITION BY currency)
),
parts AS (
  SELECT {{ keys }}currency, requests, attempts, without_cost, gpu_seconds, CAST(NULL AS DECIMAL(38, 12)) AS idle_cost,
    CASE WHEN cost IS NOT NULL
      THEN base + coalesce(apportion(CAST(total - costs * base AS DECIMAL(38, {{ places }})), cost - base, $places) OVER side, 0) END AS direct_cost
  FROM totalled
  WINDOW side AS (PARTITION BY currency ORDER BY {{ keys }}currency)
),
{% endif %}
named AS (
-- what has no cost has no currency: where there is but one, it stands beside the rest of its group
  SELECT * EXCEPT (currency), CASE WHEN direct_cost IS NULL THEN coalesce(currency, CASE WHEN min(currency) OVER () = max(currency) OVER () THEN min(currency) OVER () END) ELSE currency END AS currency
  FROM parts
)
SELECT {{ keys }}currency,
  CAST(sum(requests) AS BIGINT) AS requests, CAST(sum(attempts) AS BIGINT) AS attempts, CAST(sum(without_cost) AS BIGINT) AS without_cost,
  exact_sum(gpu_seconds) AS gpu_seconds, CAST(sum(direct_cost) AS DECIMAL(38, 12)) AS direct_cost, CAST(sum(idle_cost) AS DECIMAL(38, 12)) AS idle_cost
FROM named
GROUP BY {{ keys }}currency
-- step: lines
{% if spreads %}
WITH costs AS (
  SELECT {{ cost }}, max(amount) AS amount, sum(percent) AS percent FROM shares GROUP BY {{ cost }}
),
weighed AS (
  SELECT name, method, costs.currency, since, whole, copy, amount, key_1 AS line, false AS is_rest,
    CAST(greatest(coalesce(direct_cost, 0) + coalesce(idle_cost, 0), 0) AS DECIMAL(38, 12)) AS weight
  FROM costs
  JOIN lines ON costs.currency = lines.currency
  WHERE method = 'proportional'
  UNION ALL
  SELECT {{ cost }}, amount, line, false, 1 FROM costs CROSS JOIN (SELECT DISTINCT key_1 AS line FROM lines WHERE key_1 IS NOT NULL) WHERE method = 'even'
  UNION ALL
  SELECT {{ cost }}, amount, line, false, percent FROM shares WHERE method = 'fixed'
  UNION ALL
-- what the percentages leave, and what nobody can take
  SELECT {{ cost }}, amount, NULL, true, CASE WHEN method = 'fixed' THEN greatest(100 - percent, 0) ELSE 0 END FROM costs
)
SELECT name, currency, line, is_rest,
  CASE WHEN weight > 0 THEN apportion(amount, weight, {{ [places, 2] | min }}) OVER (PARTITION BY {{ cost }} ORDER BY is_rest, line)
    WHEN is_rest AND sum(weight) OVER (PARTITION BY {{ cost }}) = 0 THEN amount END AS amount
FROM weighed
-- step: parts
{% endif %}
WITH listed AS (
  SELECT {{ keys }}'requests' AS entry, currency, requests, attempts, without_cost, gpu_seconds, direct_cost, idle_cost, CAST(NULL AS DECIMAL(38, 12)) AS shared_cost, CAST(NULL AS DECIMAL(38, 12)) AS own_cost
  FROM lines
{% if spreads %}
  UNION ALL
  SELECT line, 'requests', currency, 0, 0, 0, NULL, NULL, NULL, amount, NULL FROM parts WHERE NOT is_rest AND amount IS NOT NULL
  UNION ALL
  SELECT NULL, concat('unallocated: ', name), currency, NULL, NULL, NULL, NULL, NULL, NULL, NULL, amount FROM parts WHERE is_rest AND amount <> 0
{% else %}
  UNION ALL
  SELECT {{ nothing() }}concat('shared: ', name), currency, NULL, NULL, NULL, NULL, NULL, NULL, NULL, max(amount)
  FROM shares
  GROUP BY {{ cost }}
{% endif %}
{% if method == "gpu-time" %}
  UNION ALL
  SELECT {{ nothing() }}concat('idle: ', pool), currency, NULL, NULL, NULL, NULL, NULL, NULL, NULL, idle FROM pool_costs WHERE {{ "used = 0" if idle == "spread" else "idle <> 0" }}
{% endif %}
),
summed AS (
  SELECT {{ keys }}entry, currency,
    CAST(sum(requests) AS BIGINT) AS requests, CAST(sum(attempts) AS BIGINT) AS attempts, CAST(sum(without_cost) AS BIGINT) AS without_cost, exact_sum(gpu_seconds) AS gpu_seconds,
    {% for name in ["direct_cost", "idle_cost", "shared_cost", "own_cost"] %}CAST(sum({{ name }}) AS DECIMAL(38, 12)) AS {{ name }}{{ ", " if not loop.last }}{% endfor %}

  FROM listed
  GROUP BY {{ keys }}entry, currency
),
costed AS (
  SELECT *, CASE WHEN coalesce(direct_cost, idle_cost, shared_cost, own_cost) IS NOT NULL
    THEN CAST(coalesce(direct_cost, 0) + coalesce(idle_cost, 0) + coalesce(shared_cost, 0) + coalesce(own_cost, 0) AS DECIMAL(38, 12)) END AS cost
  FROM summed
)
SELECT *, CASE WHEN min(cost) OVER (PARTITION BY currency) < 0 THEN CAST(cost AS DOUBLE) / nullif(CAST(sum(cost) OVER (PARTITION BY currency) AS DOUBLE), 0)
  WHEN cost IS NOT NULL THEN CAST(apportion(1, cost, 6) OVER (PARTITION BY currency ORDER BY {{ keys }}entry) AS DOUBLE) END AS share
FROM costed
-- step: rows
WITH owed AS (
{% if method == "gpu-time" %}
  SELECT currency, amount FROM pool_costs
{% else %}
  SELECT currency, {{ rounded("sum(cost)") }} AS amount FROM usage GROUP BY currency
{% endif %}
  UNION ALL
  SELECT currency, max(amount) FROM shares GROUP BY {{ cost }}
),
everything AS (
  SELECT currency, sum(amount) AS cost FROM owed GROUP BY currency
),
added AS (
  SELECT currency, sum(cost) AS cost FROM rows GROUP BY currency
),
notes AS (
  SELECT 1 AS place, 'proof' AS code,
    concat('proof: the rows add up to ', readable(coalesce(added.cost, 0)), ' ', coalesce(everything.currency, 'of an unknown currency'), ', {{ "pools" if method == "gpu-time" else "attempts" }} and shared costs to ',
      readable(everything.cost), ' ', coalesce(everything.currency, 'of an unknown currency'), ': rest ',
      CASE WHEN everything.cost = added.cost THEN '0' ELSE readable(everything.cost - coalesce(added.cost, 0)) END) AS text,
    CAST(NULL AS BIGINT) AS count
  FROM everything
  LEFT JOIN added ON (everything.currency IS NOT DISTINCT FROM added.currency)
  WHERE everything.cost IS NOT NULL
{% if method == "gpu-time" %}
  UNION ALL
  SELECT 2, 'pool', concat('pool ', pool, ': part of the range has no bill, and no gpus and gpu_hour: its cost is not known'), NULL FROM pool_costs WHERE is_partly
  UNION ALL
  SELECT 2, 'pool', concat('pool ', pool, ': its attempts took ', readable(CAST(used AS BIGINT)), ' GPU seconds, and its GPUs have ', readable(CAST(size AS BIGINT)),
    ': batch sizes or times are off, or GPUs are missing in the price book; nothing is idle'), NULL
  FROM pool_costs
  WHERE used > size
  UNION ALL
  SELECT 3, 'no pool', concat('not in the price book: pool ', usage.pool, '; its attempts are in no cost'), CAST(sum(attempts) AS BIGINT)
  FROM usage
  LEFT JOIN pool_costs ON usage.pool = pool_costs.pool
  WHERE usage.pool IS NOT NULL AND pool_costs.pool IS NULL
  GROUP BY usage.pool
  UNION ALL
  SELECT 3, 'no pool', 'attempts without a pool: they are in no cost', CAST(sum(attempts) AS BIGINT) FROM usage WHERE pool IS NULL HAVING count(*) > 0
{% endif %}
  UNION ALL
  SELECT 4, 'range', concat('no time range is given: {{ "pools and shared costs" if method == "gpu-time" else "shared costs" }} are those from ', {{ date("since") }}, ' to ', {{ date("until") }}), NULL
  FROM span
  CROSS JOIN (SELECT count(*) AS costs FROM ({{ "SELECT pool FROM pool_costs UNION ALL " if method == "gpu-time" }}SELECT name FROM shares))
  WHERE costs > 0 AND since IS NOT NULL AND ($since IS NULL OR $until IS NULL)
{% if share == "spread" and not by_line %}
  UNION ALL
  SELECT 4, 'shared', 'shared costs are spread over business lines, and not over other groups: they stay in rows of their own', NULL FROM shares HAVING count(*) > 0
{% endif %}
)
SELECT code, text, count FROM notes ORDER BY place, text
-- step: notes
SELECT
{% if by_line %}
  CASE WHEN entry = 'requests' THEN key_1 ELSE entry END AS {{ dimensions[0].name }}, split_part(entry, ':', 1) AS item,
{% else %}
  {{ labelled }}
  entry AS item,
{% endif %}
  requests, attempts, without_cost, gpu_seconds, direct_cost,
{% if method == "gpu-time" and idle == "spread" %}
  idle_cost,
{% endif %}
{% if spreads %}
  shared_cost,
{% endif %}
  cost, currency, share
FROM rows
ORDER BY {{ order }}entry <> 'requests', entry, currency
{{ limit }}
