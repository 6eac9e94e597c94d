-- title: Reconciliation
-- question: Why is the provider's invoice not what the logs cost: what causes the difference, and how much of it has no cause?
-- example: reconcile --bill invoice.csv --prices prices.toml logs/
-- example: reconcile --bill invoice.csv --by day --tz UTC logs/
-- example: reconcile --bill requests.csv --missing logs/
-- sampled: refused
-- explode: line model day
-- param: bill bill ! | the invoice: CSV or Parquet, one row per charge, as in FOCUS or in a provider's export
-- param: bill_map text | names of its columns, where they are not known by themselves: cost=Amount,since=Day
-- param: prices book | the price book, prices.toml; also [prices] book in the config
-- param: currency text | the currency of the logs' costs, which must be the bill's: by the book's dated rates
-- param: by choice cause day model line | the bridge by causes, or bill and logs side by side for each day, model or line
-- param: missing flag false | list the requests that only one side has, of a bill that names requests
-- param: key dimensions request_id | the column of the logs that the bill's request ids stand in
-- param: usage_at choice start end | whether the provider counts a request when it arrives or when its answer ends
-- param: shift number 0 -24..24 | hours by which the bill's periods begin later than they read: 8 where its days are those of UTC and --tz is Asia/Shanghai
-- param: fallback side | the log of last resort: its file or role, or `where` and a condition; else records that the main role (gateway, then engine) lacks
-- param: dropped choice auto yes no | whether the provider bills what stands only in the fallback log; auto: where that brings the logs nearer to the bill
-- param: retries choice auto yes no | whether it bills earlier attempts that the log no longer has (attempt 3 of a request with one record)
-- param: truncation choice auto yes no | whether it bills prompts before they were cut (original_input_tokens)
-- param: tolerance number 0 0..1000000000 | a residual up to this much, in the bill's currency, is no error
-- param: tolerance_share number 0 0..1 | nor is one up to this part of the bill; the larger of the two holds
-- param: fail_on choice error warning never | exit with 3 where a finding is at least so severe
-- column: severity | error: the residual of the bill, or of its part, is beyond the tolerance; warning: explained, but to be looked into; info: all else
-- column: cause | what makes a part of the difference; the rows up to the residual add up to the bill
-- column: amount | what the cause adds to the logs' cost, to the last digit; null where this bill cannot tell, which leaves it in the residual
-- column: share ratio | amount / bill
-- column: tokens tokens | tokens that the cause adds; they add up to the bill's too, where it has tokens
-- column: requests requests | requests of the logs it is about, for retries the attempts
-- column: bill_rows | rows of the bill it is about
-- column: low | where the amount is not known: at least so much by the price book
-- column: high | where the amount is not known: at most so much, by max_tokens or the dearest price; null where nothing bounds it
-- column: currency | of all amounts of the row
-- column: basis | how the amount was found
-- column: day | start of the bill's period, or of the local day of a request
-- column: model | the price book's name, else the name in small letters
-- column: line | the bill's line, or the business line
-- column: bill | what the bill asks
-- column: logs | what the logs cost by the price book: every attempt that the bill's periods hold
-- column: claims | dropped clients, lost retries and truncation, as far as they are billed
-- column: prices | unpriced, unknown usage, cache class, tier, price version and rounding
-- column: other | rows of one side only, taxes, credits, adjustments, purchases
-- column: residual | bill - logs - claims - prices - other
-- column: difference | bill - logs
-- column: coverage ratio | logs / what the bill asks for usage
-- column: bill_tokens tokens | tokens of the bill; null where it has none
-- column: log_tokens tokens | tokens of the logs
-- column: token_coverage ratio | log_tokens / bill_tokens
-- column: side | only in the bill, or only in the logs
-- column: request_id | the request, as that side names it
-- column: timestamp | its time, as that side has it
-- total: bill logs claims prices other residual difference bill_tokens log_tokens
{% set classes = ["input", "cached", "write", "output"] %}
{% set money = "DECIMAL(38, 18)" %}
{% set nothing = "CAST(0 AS DECIMAL(38, 18))" %}
{% set minute = 60000000000 %}
{% set epoch = "arrow_cast(0, 'Timestamp(Nanosecond, Some(\"UTC\"))')" %}
-- what the price book calls the model
{% set book_name = "regexp_replace(rule, '( from [0-9]{4}-[0-9]{2}-[0-9]{2}[^ ,]*)?( [(](alias|pattern) .*[)])?(, (tier|above) .*)*$', '')" %}
{% if fallback is none %}
{% set said_fallback = "CAST(NULL AS BOOLEAN)" %}
{% elif fallback is mapping %}
{% set said_fallback = "coalesce((" ~ fallback.condition ~ "), false)" %}
{% else %}
{% set said_fallback = "coalesce(role = $fallback OR source_file = $fallback OR source_file LIKE '%/' || $fallback, false)" %}
{% endif %}
-- no column is given another meaning: the engine would look through to the old one
{% set whole_charge = charge_at("timestamp") | replace(", input_tokens,", ", input_tokens + cut,") | replace(", total_tokens,", ", total_tokens + cut,") %}
{% set token_charge = charge_at("bill_time") | replace(", model_name,", ", bill_model,") | replace(", service_tier,", ", bill_tier,") | replace(", input_tokens,", ", of_input,")
  | replace(", output_tokens,", ", of_output,") | replace(", cached_tokens,", ", of_cached,") | replace(", cache_write_tokens,", ", of_write,") %}
{% macro base_tier(tier) %}CASE WHEN lower({{ tier }}) NOT IN ('', 'default', 'standard', 'auto', 'on_demand', 'on-demand') THEN lower({{ tier }}) END{% endmacro %}
{# prices begin at midnight of some zone #}
{% macro quarter(time) %}arrow_cast(arrow_cast({{ time }}, 'Int64') / {{ 15 * minute }} * {{ 15 * minute }}, 'Timestamp(Nanosecond, Some("UTC"))'){% endmacro %}
{# what is compared: a request, of a bill that names them, else what one line used of one model in one period #}
{% macro cell(id, period, model, line, currency) %}
concat(CASE WHEN by_request THEN concat('id', chr(31), {{ id }}, CASE WHEN mixed_id IS NOT NULL THEN chr(31) || coalesce({{ model }}, chr(30)) END)
      ELSE concat(CAST(arrow_cast({{ period }}, 'Int64') AS VARCHAR), chr(31), CASE WHEN has_model THEN coalesce({{ model }}, chr(30)) END,
        chr(31), CASE WHEN has_line THEN coalesce(lower({{ line }}), chr(30)) END) END, chr(31), {{ currency }})
{% endmacro %}
{# steps of time that hold the bounds of all periods #}
{% set frame %}
  SELECT CASE
      WHEN bool_or(arrow_cast(since, 'Int64') % {{ minute }} <> 0 OR arrow_cast(until, 'Int64') % {{ minute }} <> 0) THEN 1000000000
      WHEN bool_or(arrow_cast(since, 'Int64') % {{ 15 * minute }} <> 0 OR arrow_cast(until, 'Int64') % {{ 15 * minute }} <> 0) THEN {{ minute }}
      ELSE {{ 15 * minute }} END AS width
  FROM bill
  WHERE category = 'usage' AND request_id IS NULL
{% endset %}
WITH frame AS (
{{ frame }}),
named AS (
  SELECT DISTINCT request_id AS bill_id FROM bill WHERE category = 'usage' AND request_id IS NOT NULL
),
cuts AS (
  SELECT attempts.*, width, bill_id,
    CASE WHEN input_tokens >= 0 AND original_input_tokens > input_tokens AND original_input_tokens <= 1000000000
      THEN coalesce(original_input_tokens, 0) - coalesce(input_tokens, 0) ELSE 0 END AS cut
  FROM {{ attempts }} AS attempts
  CROSS JOIN frame
  LEFT JOIN named ON {{ key[0].value }} = bill_id
),
logged AS (
  SELECT {{ key[0].value }} AS own_id, width, bill_id, timestamp, {{ "coalesce(" ~ ended ~ ", timestamp)" if usage_at == "end" else "timestamp" }} AS counted,
    model_name, business_line AS line, {{ base_tier("service_tier") }} AS tier, role, {{ said_fallback }} AS said_fallback, cut,
    attempt, attempts, coalesce(attempt_number = attempts, true) AS is_last,
    coalesce(http_status = 499 OR normal_reason(finish_reason) = 'abort' OR lower(status) IN ('cancelled', 'canceled', 'aborted'), false) AS is_gone,
    {{ charge_at("timestamp") }} AS charge, CASE WHEN cut > 0 THEN {{ whole_charge }} END AS whole
  FROM cuts
),
priced AS (
  SELECT *, charge['state'] IN ('priced', 'unpriced') AS is_known
  FROM logged
{% if fallback is not none %}
-- what the main log has is not dropped
  WHERE NOT said_fallback OR own_id IS NULL OR own_id NOT IN (SELECT own_id FROM logged WHERE NOT said_fallback AND own_id IS NOT NULL)
{% endif %}
),
read AS (
  SELECT bill_id, role, said_fallback, charge, line, tier, is_last, is_gone,
    arrow_cast(timestamp, 'Int64') / width AS arrived,
-- far from the ends of all time, so that it can be shifted
    CASE WHEN abs(arrow_cast(counted, 'Int64') / 1000000000) < 9000000000
      THEN (arrow_cast(counted, 'Int64') - CAST($shift * 3600 AS BIGINT) * 1000000000) / width END AS counted,
    charge['rule'] AS rule, CASE WHEN charge['rule'] IS NULL THEN lower(model_name) END AS own_name,
    CASE WHEN is_known AND is_last AND attempt BETWEEN attempts + 1 AND attempts + 1000 THEN coalesce(attempt, 0) - coalesce(attempts, 0) ELSE 0 END AS missing,
    CASE WHEN is_known THEN cut ELSE 0 END AS cut,
    CASE WHEN is_known THEN charge['uncached_tokens'] END AS t_input, CASE WHEN is_known THEN charge['cached_tokens'] END AS t_cached,
    CASE WHEN is_known THEN charge['write_5m_tokens'] + charge['write_1h_tokens'] END AS t_write,
    CASE WHEN is_known THEN charge['output_tokens'] END AS t_output,
    CASE WHEN is_known THEN coalesce(charge['cost'], {{ nothing }}) ELSE {{ nothing }} END AS cost,
    coalesce(whole['cost'] - charge['cost'], {{ nothing }}) AS d_cost
  FROM priced
),
grouped AS (
  SELECT bill_id, arrived, counted, rule, own_name, line, tier, role, said_fallback, is_last, is_gone, charge['currency'] AS currency, charge['state'] AS state,
    count(*) AS n, sum(missing) AS missing, count(*) FILTER (WHERE cut > 0) AS cuts,
{% for class in classes %}
    sum(coalesce(t_{{ class }}, 0)) AS t_{{ class }}, sum(missing * coalesce(t_{{ class }}, 0)) AS m_{{ class }},
{% endfor %}
    sum(cut) AS cut, sum(missing * cut) AS m_cut,
    sum(cost) AS cost, sum(CAST(missing * cost AS {{ money }})) AS m_cost, sum(d_cost) AS d_cost, sum(CAST(missing * d_cost AS {{ money }})) AS md_cost,
    sum(charge['low']) AS low, CASE WHEN count(*) = count(charge['high']) THEN sum(charge['high']) END AS high
  FROM read
  GROUP BY bill_id, arrived, counted, rule, own_name, line, tier, role, said_fallback, is_last, is_gone, currency, state
)
SELECT *, coalesce({{ book_name }}, own_name) AS model FROM grouped
-- step: usage
WITH one AS (
  SELECT CASE WHEN count(DISTINCT currency) = 1 THEN max(currency) END AS currency FROM usage
),
known AS (
  SELECT max(request_id) FILTER (WHERE category = 'usage') IS NOT NULL AS by_request, max(since) AS latest FROM bill
)
SELECT "row", request_id, model, line, by_request,
  coalesce(since, {{ epoch }}) AS since,
  coalesce(until, arrow_cast(9000000000000000000, 'Timestamp(Nanosecond, Some("UTC"))')) AS until,
  since AS said_since, coalesce(until, since) AS said_until, {{ quarter("coalesce(since, latest, $since, $now)") }} AS priced_at,
  {{ base_tier("tier") }} AS tier,
  CASE
    WHEN class IS NULL OR lower(class) IN ('', 'total', 'all') THEN 'total'
    WHEN lower(class) IN ('input', 'uncached', 'uncached_input', 'prompt') THEN 'input'
    WHEN lower(class) IN ('cached', 'cached_input', 'cache_read') THEN 'cached'
    WHEN lower(class) IN ('write', 'cache_write', 'write_5m', 'write_1h', 'cache_creation') THEN 'write'
    WHEN lower(class) IN ('output', 'completion', 'reasoning') THEN 'output'
    ELSE lower(class) END AS class,
  tokens, requests, coalesce(cost, 0) AS cost, cost IS NOT NULL AS has_cost, coalesce(bill.currency, $currency, one.currency) AS currency,
  coalesce(category, 'usage') AS category
FROM bill CROSS JOIN one CROSS JOIN known
-- step: lines
WITH wanted AS (
  SELECT DISTINCT model AS bill_model, priced_at AS bill_time FROM lines WHERE category = 'usage'
),
tiers AS (
  SELECT lower(tier) AS bill_tier FROM price_list WHERE tier IS NOT NULL
  UNION
  SELECT tier FROM lines WHERE tier IS NOT NULL
),
asked AS (
  SELECT bill_model, bill_time, CAST(NULL AS VARCHAR) AS bill_tier FROM wanted
  UNION ALL
  SELECT bill_model, bill_time, bill_tier FROM wanted CROSS JOIN tiers
),
blank AS (
  SELECT * FROM {{ attempts }} WHERE false
),
calls AS (
-- one token of each class
  SELECT asked.*, tokens.*, blank.*
  FROM asked
  CROSS JOIN (VALUES ('input', 1, 0, 0, 0), ('cached', 1, 1, 0, 0), ('write', 1, 0, 1, 0), ('output', 0, 0, 0, 1)) AS tokens (probe, of_input,
    of_cached, of_write, of_output)
  LEFT JOIN blank ON false
)
SELECT bill_model, bill_time, bill_tier, probe, {{ token_charge }} AS charge FROM calls
-- step: probes
WITH priced AS (
  SELECT bill_model, bill_time, bill_tier, max(charge['rule']) AS rule,
{% for class in classes %}
    max(CASE WHEN probe = '{{ class }}' THEN charge['cost'] - charge['request_cost'] END) AS r_{{ class }},
{% endfor %}
    max(charge['request_cost']) AS r_request, max(charge['currency']) AS currency
  FROM probes
  GROUP BY bill_model, bill_time, bill_tier
)
SELECT *, coalesce({{ book_name }}, lower(bill_model)) AS model FROM priced
-- step: rates
WITH usual AS (
  SELECT * FROM lines WHERE category = 'usage'
),
told AS (
  SELECT bool_or(by_request) AS by_request, bool_or(model IS NOT NULL) AS has_model, bool_or(line IS NOT NULL) AS has_line,
    bool_or(tier IS NOT NULL) AS has_tier,
    bool_or(class = 'cached' AND tokens > 0) AS has_cached, bool_or(class = 'write' AND tokens > 0) AS has_write, bool_or(class = 'request') AS has_fees,
    min(CASE WHEN request_id IS NOT NULL THEN said_since END) AS first, max(CASE WHEN request_id IS NOT NULL THEN said_until END) AS last,
    (SELECT min(currency) FROM lines) AS currency,
-- half a unit of the last decimal that the bill's costs have, two at least
    CASE {% for places in range(2, 12) %}WHEN bool_and(cost = CAST(round(cost, {{ places }}) AS DECIMAL(38,
      12))) THEN CAST('0.{{ "0" * places }}5' AS {{ money }}) {% endfor %}ELSE {{ nothing }} END AS half_unit
  FROM usual
),
roles AS (
  SELECT coalesce(bool_or(role LIKE '%gateway%'), false) AS has_gateway, coalesce(bool_or(role LIKE '%engine%'), false) AS has_engine FROM usage
),
frame AS (
{{ frame }})
SELECT coalesce(by_request, false) AS by_request, coalesce(has_model, false) AS has_model, coalesce(has_line, false) AS has_line,
  coalesce(has_tier, false) AS has_tier,
  coalesce(has_cached, false) AS has_cached, coalesce(has_write, false) AS has_write, coalesce(has_fees, false) AS has_fees, currency, half_unit,
    width, has_gateway, has_engine,
-- requests are of whole local days
  arrow_cast(local_period(first, 'day', $zone, $week_start), 'Int64') / width AS first_step,
  arrow_cast(local_period(local_period(last, 'day', $zone, $week_start) + INTERVAL '26 hours', 'day', $zone, $week_start), 'Int64') / width AS end_step
FROM told CROSS JOIN roles CROSS JOIN frame
-- step: facts
SELECT request_id AS mixed_id FROM lines WHERE category = 'usage' AND request_id IS NOT NULL GROUP BY request_id HAVING count(DISTINCT model) > 1
-- step: mixed
WITH spans AS (
  SELECT since, max(until) AS until FROM lines WHERE category = 'usage' AND request_id IS NULL GROUP BY since
),
marks AS (
  SELECT arrow_cast(since, 'Int64') / width AS step, since FROM spans CROSS JOIN facts
  UNION ALL
  SELECT arrived, NULL FROM usage
  UNION ALL
  SELECT counted, NULL FROM usage
),
latest AS (
-- the period that began last
  SELECT DISTINCT step, max(since) OVER (ORDER BY step) AS since FROM marks WHERE step IS NOT NULL
),
periods AS (
  SELECT step, latest.since AS period
  FROM latest CROSS JOIN facts
  JOIN spans ON latest.since = spans.since AND step < arrow_cast(until, 'Int64') / width
),
placed AS (
  SELECT usage.*, CASE WHEN NOT by_request THEN counting.period END AS period,
    CASE WHEN by_request THEN coalesce(arrived >= first_step AND arrived < end_step, first_step IS NULL) ELSE arriving.period IS NOT NULL END AS arrived_in,
    counting.period IS NOT NULL AS in_period, by_request, has_model, has_line,
    coalesce(said_fallback, CASE WHEN has_gateway THEN role NOT LIKE '%gateway%' WHEN has_engine THEN role NOT LIKE '%engine%' END, false) AS is_fallback,
    coalesce(usage.currency, facts.currency) AS money
  FROM usage CROSS JOIN facts
  LEFT JOIN periods AS arriving ON usage.arrived = arriving.step
  LEFT JOIN periods AS counting ON usage.counted = counting.step
),
judged AS (
  SELECT *, CASE WHEN by_request THEN bill_id IS NOT NULL OR arrived_in ELSE in_period END AS counted_in,
    CASE WHEN by_request THEN bill_id IS NOT NULL ELSE in_period AND (NOT has_model OR bill_has IS NOT NULL) END AS is_joint
  FROM placed
  LEFT JOIN (SELECT DISTINCT model AS bill_has FROM rates) AS models ON placed.model = bill_has
  LEFT JOIN mixed ON bill_id = mixed_id
)
SELECT *,
  {{ cell("bill_id", "period", "model", "line", "money") }} AS cell
FROM judged
-- step: placed
WITH booked AS (
  SELECT lines.*, rates.model AS book_model, rates.currency = lines.currency AS is_priced,
    {% for class in classes + ["request"] %}CASE WHEN rates.currency = lines.currency THEN r_{{ class }} END AS r_{{ class }}, {% endfor %}

    {{ cell("request_id", "since", "rates.model", "line", "lines.currency") }} AS cell
  FROM (SELECT * FROM lines WHERE category = 'usage') AS lines
  CROSS JOIN (SELECT has_model, has_line FROM facts) AS facts
  LEFT JOIN rates ON (lines.model IS NOT DISTINCT FROM rates.bill_model) AND lines.priced_at = rates.bill_time AND rates.bill_tier IS NULL
  LEFT JOIN mixed ON lines.request_id = mixed_id
),
others AS (
-- what a token of the bill's tier costs beyond one of the base price
  SELECT cell, sum(CAST(tokens * CASE class {% for class in classes %}WHEN '{{ class }}' THEN other.r_{{ class }} - booked.r_{{ class }} {% endfor %}END AS {{ money }})) AS tier_cost
  FROM booked
  JOIN rates AS other ON (booked.model IS NOT DISTINCT FROM other.bill_model) AND booked.priced_at = other.bill_time AND booked.tier = other.bill_tier AND is_priced
  GROUP BY cell
)
SELECT booked.cell, min(since) AS since, max(book_model) AS model, max(line) AS line, max(currency) AS currency, max(request_id) AS bill_id,
  min(model) AS bill_model, min(priced_at) AS bill_time, min(said_since) AS said_since,
  sum(cost) AS cost, count(*) AS bill_rows, count(*) FILTER (WHERE has_cost) AS cost_rows,
  count(tokens) FILTER (WHERE class IN ('input', 'cached', 'write', 'output')) > 0 AS by_class,
  count(tokens) FILTER (WHERE class = 'total') > 0 AS by_total,
{% for class in classes %}
  coalesce(sum(CAST(tokens AS DECIMAL(38, 0))) FILTER (WHERE class = '{{ class }}'), 0) AS b_{{ class }},
{% endfor %}
  coalesce(sum(CAST(tokens AS DECIMAL(38, 0))) FILTER (WHERE class = 'total'), 0) AS b_total,
  sum(CAST(coalesce(requests, tokens) AS DECIMAL(38, 0))) FILTER (WHERE class = 'request') AS b_request,
  max(r_input) AS r_input, max(r_cached) AS r_cached, max(r_write) AS r_write, max(r_output) AS r_output, max(r_request) AS r_request,
  coalesce(max(tier_cost), {{ nothing }}) AS b_tier
FROM booked
LEFT JOIN others ON booked.cell = others.cell
GROUP BY booked.cell
-- step: billed
WITH tiered AS (
-- the same of the logs' tiers
  SELECT placed.*, facts.has_tier,
    {% for class in classes %}coalesce(other.r_{{ class }} - base.r_{{ class }}, {{ nothing }}) AS more_{{ class }}{{ "" if loop.last else ", " }}{% endfor %}

  FROM (SELECT * FROM placed WHERE is_joint) AS placed
  CROSS JOIN (SELECT has_tier FROM facts) AS facts
  LEFT JOIN billed ON placed.cell = billed.cell
  LEFT JOIN rates AS base ON (billed.bill_model IS NOT DISTINCT FROM base.bill_model) AND billed.bill_time = base.bill_time AND base.bill_tier IS NULL AND has_tier
  LEFT JOIN rates AS other ON (billed.bill_model IS NOT DISTINCT FROM other.bill_model) AND billed.bill_time = other.bill_time AND placed.tier = other.bill_tier AND has_tier
)
SELECT cell, is_fallback, max(model) AS model, max(line) AS line, max(money) AS currency, min(period) AS period, min(arrived) AS arrived,
  sum(n) FILTER (WHERE state IN ('priced', 'unpriced')) AS n, coalesce(sum(n) FILTER (WHERE state = 'unpriced'), 0) AS unpriced,
  coalesce(sum(n) FILTER (WHERE state = 'unknown'), 0) AS unknown, coalesce(sum(n) FILTER (WHERE state = 'unknown' AND is_gone), 0) AS gone,
  sum(missing) AS missing, sum(cuts) AS cuts,
{% for class in classes %}
  sum(t_{{ class }}) AS t_{{ class }}, sum(m_{{ class }}) AS m_{{ class }},
{% endfor %}
  sum(cut) AS cut, sum(m_cut) AS m_cut, sum(cost) AS cost, sum(m_cost) AS m_cost, sum(d_cost) AS d_cost, sum(md_cost) AS md_cost,
{% for part in ["t", "m"] %}
  sum(CAST({% for class in classes %}{{ part }}_{{ class }} * more_{{ class }}{{ "" if loop.last else " + " }}{% endfor %} AS {{ money }})) AS {{ part }}_tier,
{% endfor %}
  sum(CAST(cut * more_input AS {{ money }})) AS d_tier, sum(CAST(m_cut * more_input AS {{ money }})) AS md_tier,
  sum(low) FILTER (WHERE state = 'unknown') AS low
FROM tiered
GROUP BY cell, is_fallback
-- step: joint
{% macro chosen(base, lost, cut, lost_cut) %}(CASE WHEN is_fallback THEN d ELSE 1 END) * ({{ base }} + r * {{ lost }} + t * {{ cut }} + r * t * {{ lost_cut }}){% endmacro %}
WITH choices AS (
  SELECT column1 AS d, column2 AS r, column3 AS t FROM (VALUES (0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1))
  CROSS JOIN facts
-- a request of the bill that the fallback log has is billed
  WHERE {{ {"yes": "column1 = 1", "no": "column1 = 0", "auto": "(column1 = 1 OR NOT by_request)"}[dropped] }}
    AND {{ {"yes": "column2 = 1", "no": "column2 = 0", "auto": "true"}[retries] }} AND {{ {"yes": "column3 = 1", "no": "column3 = 0", "auto": "true"}[truncation] }}
),
placed_joint AS (
  SELECT joint.*, CASE WHEN by_request THEN cell ELSE '' END AS place FROM joint CROSS JOIN facts
),
summed AS (
  SELECT cell, place, d, r, t,
{% for class in classes %}
    sum({{ chosen("t_" ~ class, "m_" ~ class, "cut" if class == "input" else "0", "m_cut" if class == "input" else "0") }}) AS t_{{ class }},
{% endfor %}
    sum({{ chosen("n", "missing", "0", "0") }}) AS t_request,
    sum(CAST({{ chosen("cost", "m_cost", "d_cost", "md_cost") }} AS {{ money }})) AS cost,
    sum(CAST({{ chosen("t_tier", "m_tier", "d_tier", "md_tier") }} AS {{ money }})) AS t_tier,
    max(unpriced) AS unpriced, sum(unknown) AS unknown, sum(gone) AS gone
  FROM placed_joint CROSS JOIN choices
  GROUP BY cell, place, d, r, t
),
compared AS (
  SELECT place, d, r, t,
    abs(coalesce(b_input + b_cached + b_write, 0) - coalesce(t_input + t_cached + t_write, 0)) + abs(coalesce(b_output, 0) - coalesce(t_output,
      0)) AS class_distance,
    abs(coalesce(CASE WHEN by_class THEN b_input + b_cached + b_write + b_output ELSE b_total END,
      0) - coalesce(t_input + t_cached + t_write + t_output, 0)) AS total_distance,
    CASE WHEN unpriced > 0 THEN {{ nothing }} ELSE abs(coalesce(CAST(billed.cost AS {{ money }}), {{ nothing }}) - coalesce(summed.cost,
      {{ nothing }})) END AS cost_distance
  FROM summed
  LEFT JOIN billed ON summed.cell = billed.cell
),
kinds AS (
-- of a bill that has tokens here and there the costs decide
  SELECT coalesce(bool_and(by_class), false) AS all_by_class, coalesce(bool_and(by_class OR by_total), false) AS all_by_total FROM billed
),
measured AS (
  SELECT place, d, r, t,
    sum(CASE WHEN all_by_class THEN CAST(class_distance AS {{ money }}) WHEN all_by_total THEN CAST(total_distance AS {{ money }}) ELSE cost_distance END) AS distance
  FROM compared CROSS JOIN kinds
  GROUP BY place, d, r, t
),
ranked AS (
  SELECT *, row_number() OVER (PARTITION BY place ORDER BY distance, d + r + t, d DESC, r DESC) AS rank FROM measured
)
SELECT summed.* FROM summed
JOIN ranked ON ranked.place = summed.place AND ranked.d = summed.d AND ranked.r = summed.r AND ranked.t = summed.t
WHERE rank = 1
-- step: explained
WITH sides AS (
  SELECT billed.cell AS bill_cell, explained.cell AS log_cell, billed.since, billed.said_since, billed.model, billed.line, billed.currency,
    billed.bill_model, billed.bill_time,
    CAST(coalesce(billed.cost, 0) AS {{ money }}) AS k, coalesce(explained.cost, {{ nothing }}) AS c, coalesce(bill_rows, 0) AS bill_rows,
      coalesce(cost_rows, 0) AS cost_rows,
    coalesce(by_class, false) AS by_class, coalesce(by_total, false) AS by_total,
{% for class in classes %}
    coalesce(b_{{ class }}, 0) AS b_{{ class }}, coalesce(t_{{ class }}, 0) AS t_{{ class }}, r_{{ class }},
{% endfor %}
    coalesce(b_total, 0) AS b_total, b_request, coalesce(t_request, 0) AS t_request, r_request,
    coalesce(b_tier, {{ nothing }}) AS b_tier, coalesce(t_tier, {{ nothing }}) AS t_tier,
    coalesce(unpriced, 0) AS unpriced, coalesce(unknown, 0) AS unknown, coalesce(gone, 0) AS gone, explained.d, explained.r, explained.t
  FROM billed
  FULL JOIN explained ON billed.cell = explained.cell
),
totals AS (
  SELECT sides.*, facts.by_request, has_model, has_line, has_tier, has_cached, has_write, has_fees, half_unit,
    b_input + b_cached + b_write AS b_prompt, t_input + t_cached + t_write AS t_prompt,
    CASE WHEN by_class THEN b_input + b_cached + b_write + b_output WHEN by_total THEN b_total END AS b_tokens,
      t_input + t_cached + t_write + t_output AS t_tokens,
    log_cell IS NULL AND (by_request OR has_model AND logs_have IS NULL) AS is_unlogged,
    by_request AND unknown > 0 AND t_request = 0 AS is_unknown
  FROM sides
  CROSS JOIN facts
  LEFT JOIN (SELECT DISTINCT model AS logs_have FROM placed WHERE counted_in) AS models ON model = logs_have
),
sided AS (
-- what one side alone knows is not taken apart
  SELECT *, by_class AND r_input IS NOT NULL AND r_output IS NOT NULL AND NOT is_unlogged AND NOT is_unknown AS comparable FROM totals
),
valued AS (
  SELECT *, CASE WHEN comparable OR b_tokens = t_tokens THEN CAST(half_unit * cost_rows AS {{ money }}) ELSE {{ nothing }} END AS slack,
    CASE
      WHEN bill_cell IS NULL THEN -c
      WHEN is_unlogged OR is_unknown THEN k
-- of a price that nobody knows, the bill's own
      WHEN NOT comparable AND unpriced > 0 AND b_tokens > 0 THEN CAST(round(CAST(k AS DECIMAL(38, 12)) * (b_tokens - t_tokens) / b_tokens, 12) AS {{ money }})
      WHEN comparable THEN CAST((b_prompt - t_prompt) * r_input + (b_output - t_output) * r_output + CASE WHEN has_fees THEN coalesce(b_request,
        0) - t_request ELSE 0 END * r_request AS {{ money }})
      ELSE {{ nothing }} END AS volume,
    CASE WHEN comparable THEN CAST((b_cached - t_cached) * (r_cached - r_input) AS {{ money }}) ELSE {{ nothing }} END AS of_cached,
    CASE WHEN comparable THEN CAST((b_write - t_write) * (r_write - r_input) AS {{ money }}) ELSE {{ nothing }} END AS of_write,
    CASE WHEN comparable AND has_tier THEN b_tier - t_tier ELSE {{ nothing }} END AS of_tier
  FROM sided
)
SELECT *, k - c - volume - of_tier - CASE WHEN has_cached THEN of_cached ELSE {{ nothing }} END - CASE WHEN has_write THEN of_write ELSE {{ nothing }} END AS rest FROM valued
-- step: compared
-- a bill without cached tokens counts them as input, at their price or at that of input: whichever its cost is nearer to
SELECT *, CASE WHEN has_cached OR abs(rest - of_cached) < abs(rest) THEN of_cached ELSE {{ nothing }} END AS from_cached,
  CASE WHEN NOT has_cached AND abs(rest - of_cached) < abs(rest) THEN rest - of_cached ELSE rest END AS rest_of_cached
FROM compared
-- step: cached
SELECT *, CASE WHEN has_write OR abs(rest_of_cached - of_write) < abs(rest_of_cached) THEN of_write ELSE {{ nothing }} END AS from_write,
  CASE WHEN NOT has_write AND abs(rest_of_cached - of_write) < abs(rest_of_cached) THEN rest_of_cached - of_write ELSE rest_of_cached END AS price
FROM cached
-- step: written
WITH fitting AS (
-- tiers at whose prices these tokens cost what the bill asks
  SELECT written.bill_cell AS fitting_cell, min(coalesce(rates.bill_tier, 'standard')) AS fitting_tier
  FROM written
  JOIN rates ON (written.bill_model IS NOT DISTINCT FROM rates.bill_model) AND written.bill_time = rates.bill_time
  -- by far more than what was rounded off
  WHERE NOT (has_tier AND comparable) AND price <> 0 AND abs(price) > 20 * slack AND unpriced = 0
    AND abs(k - volume - from_cached - from_write - CAST({% for class in classes %}t_{{ class }} * rates.r_{{ class }} + {% endfor %}t_request * rates.r_request AS {{ money }})) <= slack
  GROUP BY written.bill_cell
)
SELECT written.*, fitting_tier,
  CASE
    WHEN bill_cell IS NULL THEN 'residual'
    WHEN is_unlogged THEN 'only in the bill'
    WHEN is_unknown THEN CASE WHEN gone > 0 THEN 'gone' ELSE 'unknown' END
    WHEN unpriced > 0 THEN 'unpriced'
    WHEN fitting_tier IS NOT NULL THEN 'tier'
    WHEN price = 0 OR abs(price) <= slack THEN 'rounding'
    WHEN comparable THEN 'price'
    WHEN by_request AND unknown > 0 THEN CASE WHEN gone > 0 THEN 'gone' ELSE 'unknown' END
    ELSE 'residual' END AS price_cause,
  CASE
    WHEN is_unlogged THEN 'only in the bill'
    WHEN by_request AND unknown > 0 THEN CASE WHEN gone > 0 THEN 'gone' ELSE 'unknown' END
    ELSE 'residual' END AS volume_cause
FROM written
LEFT JOIN fitting ON bill_cell = fitting_cell
-- step: cells
{% set known = "state IN ('priced', 'free')" %}
{% macro tokens(prefix) %}{% for class in classes %}{{ prefix }}_{{ class }}{{ "" if loop.last else " + " }}{% endfor %}{% endmacro %}
{% macro day(said, period, step) %}
local_period(coalesce({{ said }}, nullif({{ period }}, {{ epoch }}),
      arrow_cast({{ step }} * width, 'Timestamp(Nanosecond, Some("UTC"))')), 'day', $zone, $week_start)
{% endmacro %}
WITH dated AS (
-- what both sides have counts for the bill's day
  SELECT placed.*, {{ tokens("t") }} AS tokens,
    CASE WHEN has_model OR by_request THEN placed.model END AS shown_model, CASE WHEN has_line OR by_request THEN placed.line END AS shown_line,
    {{ day("billed.said_since", "period", "coalesce(counted, arrived)") }} AS day
  FROM placed CROSS JOIN (SELECT width FROM facts) AS facts
  LEFT JOIN billed ON placed.cell = billed.cell AND is_joint
),
claimed AS (
  SELECT joint.*, d, r, t, {{ tokens("joint.t") }} AS tokens, {{ tokens("joint.m") }} AS m_tokens,
    CASE WHEN has_model OR by_request THEN joint.model END AS shown_model, CASE WHEN has_line OR by_request THEN joint.line END AS shown_line,
    {{ day("billed.said_since", "joint.period", "joint.arrived") }} AS day
  FROM joint
  JOIN explained ON joint.cell = explained.cell
  CROSS JOIN facts
  LEFT JOIN billed ON joint.cell = billed.cell
),
differing AS (
  SELECT cells.*, CASE WHEN has_model OR by_request THEN coalesce(cells.model, joint.model) END AS shown_model,
    CASE WHEN has_line OR by_request THEN coalesce(cells.line, joint.line) END AS shown_line, coalesce(cells.currency, joint.currency) AS any_currency,
    {{ day("said_since", "joint.period", "joint.arrived") }} AS day,
    CASE WHEN bill_cell IS NULL THEN 0 ELSE b_tokens END AS bill_tokens
  FROM cells CROSS JOIN (SELECT width FROM facts) AS facts
  LEFT JOIN (SELECT cell, max(model) AS model, max(line) AS line, max(currency) AS currency, min(period) AS period,
    min(arrived) AS arrived FROM joint GROUP BY cell) AS joint
    ON cells.log_cell = joint.cell
)
SELECT 'logs' AS cause, day, shown_model AS model, shown_line AS line, money AS currency, cost AS amount, tokens, n AS requests, 0 AS bill_rows,
  CAST(NULL AS {{ money }}) AS low, CAST(NULL AS {{ money }}) AS high
FROM dated WHERE arrived_in AND is_last AND NOT is_fallback AND {{ known }}
UNION ALL
SELECT 'window', day, shown_model, shown_line, money, CASE WHEN arrived_in THEN -cost ELSE cost END, CASE WHEN arrived_in THEN -tokens ELSE tokens END,
  n, 0, NULL, NULL
FROM dated WHERE arrived_in <> counted_in AND is_last AND NOT is_fallback AND {{ known }}
UNION ALL
SELECT 'only in the logs', day, shown_model, shown_line, money, -cost, -tokens, n, 0, NULL, NULL
FROM dated WHERE counted_in AND NOT is_joint AND is_last AND NOT is_fallback AND {{ known }}
UNION ALL
SELECT 'retries', day, shown_model, shown_line, money, cost, tokens, n, 0, NULL, NULL
FROM dated WHERE counted_in AND is_joint AND NOT is_last AND NOT is_fallback AND {{ known }}
UNION ALL
SELECT 'unpriced', day, shown_model, shown_line, money, {{ nothing }}, tokens, n, 0, NULL, NULL
FROM dated WHERE counted_in AND is_joint AND NOT is_fallback AND state = 'unpriced'
UNION ALL
SELECT CASE WHEN is_gone THEN 'gone' ELSE 'unknown' END, day, shown_model, shown_line, money, {{ nothing }}, 0, n, 0, low, high
FROM dated WHERE counted_in AND is_joint AND state = 'unknown'
UNION ALL
SELECT 'dropped', day, shown_model, shown_line, currency, d * cost, d * tokens, n, 0, NULL, NULL FROM claimed WHERE is_fallback AND n > 0
UNION ALL
SELECT 'overwritten', day, shown_model, shown_line, currency, CASE WHEN is_fallback THEN d ELSE 1 END * r * m_cost,
  CASE WHEN is_fallback THEN d ELSE 1 END * r * m_tokens, missing, 0, NULL, NULL
FROM claimed WHERE missing > 0
UNION ALL
SELECT 'truncation', day, shown_model, shown_line, currency, CASE WHEN is_fallback THEN d ELSE 1 END * t * (d_cost + r * md_cost),
  CASE WHEN is_fallback THEN d ELSE 1 END * t * (cut + r * m_cut), cuts, 0, NULL, NULL
FROM claimed WHERE cuts > 0
UNION ALL
SELECT volume_cause, day, shown_model, shown_line, any_currency, volume, bill_tokens - t_tokens, 0,
  CASE WHEN volume <> 0 OR price_cause = volume_cause THEN bill_rows ELSE 0 END, NULL, NULL FROM differing
UNION ALL
SELECT 'cache class', day, shown_model, shown_line, any_currency, from_cached + from_write, 0, 0,
  CASE WHEN from_cached + from_write <> 0 THEN bill_rows ELSE 0 END, NULL, NULL FROM differing
UNION ALL
SELECT 'tier', day, shown_model, shown_line, any_currency, of_tier, 0, 0, CASE WHEN of_tier <> 0 THEN bill_rows ELSE 0 END, NULL, NULL FROM differing
UNION ALL
SELECT price_cause, day, shown_model, shown_line, any_currency, price, 0, 0,
  CASE WHEN price <> 0 AND price_cause <> volume_cause THEN bill_rows ELSE 0 END, NULL, NULL FROM differing WHERE bill_cell IS NOT NULL
UNION ALL
SELECT CASE category WHEN 'credit' THEN 'credits' WHEN 'tax' THEN 'taxes' WHEN 'adjustment' THEN 'adjustments' ELSE 'purchases' END,
  local_period(said_since, 'day', $zone, $week_start), lower(lines.model), lines.line, currency, CAST(cost AS {{ money }}), 0, 0, 1, NULL, NULL
FROM lines WHERE category <> 'usage'
-- step: effects
{% set causes = [
  {"key": "logs", "name": "logs", "grade": "info", "basis": "last attempts of the requests that arrive in the bill's periods, by the price book"},
  {"key": "window", "name": "window and zone", "grade": "info", "basis": "requests that count by --shift and --usage-at, less those in the periods as written; of named requests those outside the bill's days"},
  {"key": "only in the logs", "name": "only in the logs", "grade": "warning", "basis": "logged in the bill's periods; the bill has no such request, or no such model"},
  {"key": "only in the bill", "name": "only in the bill", "grade": "warning", "basis": "what the bill asks for requests, or models, that the logs do not have"},
  {"key": "dropped", "name": "dropped clients", "grade": "info", "basis": "requests that only the fallback log has, by the price book"},
  {"key": "gone", "name": "dropped clients without usage", "grade": "unknown", "basis": "the client went away and no usage is logged: what the bill asks for these requests"},
  {"key": "retries", "name": "retries", "grade": "info", "basis": "logged attempts before the last of their request, each at its own model"},
  {"key": "overwritten", "name": "retries overwritten in the log", "grade": "info", "basis": "attempts before attempt N that the log lacks, each priced like the one that is there"},
  {"key": "truncation", "name": "truncation", "grade": "info", "basis": "the prompt before it was cut, less the prompt that was logged, by the price book"},
  {"key": "unknown", "name": "unknown usage", "grade": "unknown", "basis": "requests without usage: what the bill asks for them"},
  {"key": "unpriced", "name": "unpriced", "grade": "warning", "basis": "what the bill asks for logged tokens that the price book has no price for"},
  {"key": "cache class", "name": "cache class", "grade": "info", "basis": "tokens that are cached or written to a cache by the bill and not by the log, x (their price - that of input)"},
  {"key": "tier", "name": "tier", "grade": "info", "basis": "tokens in another tier x the difference in price; of a bill without tiers, where a tier gives exactly what it asks"},
  {"key": "price", "name": "price version", "grade": "warning", "basis": "the bill's tokens at the bill's price, less the same at the book's"},
  {"key": "rounding", "name": "rounding", "grade": "info", "basis": "as many tokens, and costs apart by at most half the last decimal of the bill for each row"},
  {"key": "credits", "name": "credits", "grade": "info", "basis": "rows of the bill of that category"},
  {"key": "taxes", "name": "taxes", "grade": "info", "basis": "rows of the bill of that category"},
  {"key": "adjustments", "name": "adjustments", "grade": "info", "basis": "rows of the bill of that category"},
  {"key": "purchases", "name": "purchases", "grade": "info", "basis": "rows of the bill of that and any other category"},
  {"key": "residual", "name": "residual", "grade": "residual", "basis": "tokens that nothing explains, at the base price, and costs that this bill cannot tell apart"},
] %}
WITH listed AS (
  SELECT position, cause, name, grade, basis, currency
  FROM (VALUES {% for cause in causes %}({{ loop.index }}, '{{ cause.key }}', '{{ cause.name }}', '{{ cause.grade }}',
    '{{ cause.basis | replace("'", "''") }}'){{ "" if loop.last else ", " }}{% endfor %})
    AS causes (position, cause, name, grade, basis)
  CROSS JOIN (SELECT DISTINCT currency FROM lines) AS currencies
),
summed AS (
  SELECT cause, currency, sum(amount) AS amount, CASE WHEN count(*) = count(tokens) THEN sum(tokens) END AS tokens,
    sum(requests) AS requests, sum(bill_rows) AS bill_rows, sum(low) AS low, CASE WHEN count(high) = count(low) THEN sum(high) END AS high
  FROM effects
  GROUP BY cause, currency
),
asked AS (
  SELECT currency, sum(cost) AS bill, sum(CASE WHEN category = 'usage' THEN cost END) AS usual, count(*) AS bill_rows FROM lines GROUP BY currency
),
told AS (
  SELECT currency, bool_or(comparable) AS comparable, bool_and(b_tokens IS NOT NULL) AS has_tokens, sum(b_tokens) AS b_tokens,
    max(d) AS d, max(r) AS r, max(t) AS t
  FROM cells
  WHERE bill_cell IS NOT NULL
  GROUP BY currency
),
running AS (
-- shown to twelve decimals so that they still add up
  SELECT listed.*, by_request, coalesce(amount, {{ nothing }}) AS exact, tokens, requests, summed.bill_rows, low, high,
    sum(coalesce(amount, {{ nothing }})) OVER (PARTITION BY listed.currency ORDER BY position) AS up_to
  FROM listed
  CROSS JOIN facts
  LEFT JOIN summed ON listed.cause = summed.cause AND (listed.currency IS NOT DISTINCT FROM summed.currency)
),
shown AS (
  SELECT running.*, CAST(CAST(round(up_to, 12) AS DECIMAL(38, 12)) - CAST(round(up_to - exact, 12) AS DECIMAL(38, 12)) AS DECIMAL(38, 12)) AS amount,
    bill, usual, comparable, has_tokens, d, r, t
  FROM running
  LEFT JOIN asked ON running.currency IS NOT DISTINCT FROM asked.currency
  LEFT JOIN told ON running.currency IS NOT DISTINCT FROM told.currency
)
SELECT position, cause, name, grade, currency, by_request, low, high, bill, usual,
  CASE
    WHEN cause IN ('gone', 'unknown') AND NOT by_request AND coalesce(requests, 0) > 0 THEN NULL
    WHEN cause IN ('cache class', 'price') AND NOT coalesce(comparable, false) AND usual <> 0 THEN NULL
    WHEN cause = 'tier' AND amount = 0 AND NOT coalesce(comparable, false) AND usual <> 0 THEN NULL
    ELSE amount END AS amount,
  CASE
    WHEN cause IN ('gone', 'unknown') AND NOT by_request AND coalesce(requests, 0) > 0 THEN NULL
    WHEN cause IN ('residual', 'only in the bill', 'unknown', 'gone') AND NOT coalesce(has_tokens, true) THEN NULL
    WHEN cause IN ('cache class', 'tier', 'price', 'rounding', 'credits', 'taxes', 'adjustments', 'purchases') THEN NULL
    ELSE coalesce(tokens, 0) END AS tokens,
  coalesce(requests, 0) AS requests, coalesce(bill_rows, 0) AS bill_rows,
  CASE
    WHEN cause IN ('gone', 'unknown') AND NOT by_request AND coalesce(requests,
      0) > 0 THEN 'no usage is logged, and a bill that names no requests does not tell what it asks for these'
    WHEN cause IN ('cache class', 'price') AND NOT coalesce(comparable, false) AND usual <> 0 THEN 'not told by a bill without tokens by class'
    WHEN cause = 'tier' AND amount = 0 AND NOT coalesce(comparable,
      false) AND usual <> 0 THEN 'not told by a bill without tiers and tokens by class, unless a tier gives exactly what it asks'
    WHEN cause = 'dropped' AND requests > 0 AND d = 0 THEN 'not billed: the logs are nearer to the bill without them (or --dropped no)'
    WHEN cause = 'overwritten' AND requests > 0 AND r = 0 THEN 'not billed: the logs are nearer to the bill without them (or --retries no)'
    WHEN cause = 'truncation' AND requests > 0 AND t = 0 THEN 'not billed: the logs are nearer to the bill with the prompt as cut (or --truncation no)'
    ELSE basis END AS basis
FROM shown
UNION ALL
SELECT {{ causes | length + 1 }}, 'bill', 'bill', 'info', asked.currency, NULL, NULL, NULL, bill, usual, CAST(bill AS DECIMAL(38, 12)),
  CASE WHEN coalesce(has_tokens, false) THEN b_tokens END, 0, bill_rows, 'all rows of the bill'
FROM asked LEFT JOIN told ON asked.currency IS NOT DISTINCT FROM told.currency
-- step: bridge
{% macro plain(amount) %}regexp_replace(CAST(CAST({{ amount }} AS DECIMAL(38, 12)) AS VARCHAR), '[.]?0+$', ''){% endmacro %}
{% macro percent(part, whole) %}CAST(round(CAST(1000 * CAST({{ part }} AS DOUBLE) / nullif(CAST({{ whole }} AS DOUBLE), 0) AS DOUBLE)) / 10 AS VARCHAR){% endmacro %}
WITH outside AS (
  SELECT sum(n) FILTER (WHERE arrived IS NULL AND NOT counted_in) AS undated, sum(n) FILTER (WHERE arrived IS NOT NULL AND NOT counted_in) AS outside,
    sum(cost) FILTER (WHERE arrived IS NOT NULL AND NOT counted_in) AS outside_cost,
    CASE WHEN count(DISTINCT money) FILTER (WHERE arrived IS NOT NULL AND NOT counted_in) = 1
      THEN max(money) FILTER (WHERE arrived IS NOT NULL AND NOT counted_in) END AS outside_money,
    sum(n) FILTER (WHERE money IS NOT NULL AND asked IS NULL) AS other_money
  FROM placed
  LEFT JOIN (SELECT DISTINCT currency AS asked FROM lines) AS currencies ON money = asked
),
totals AS (
  SELECT currency, max(bill) AS bill, max(usual) AS usual, max(amount) FILTER (WHERE cause = 'logs') AS logs,
    max(amount) FILTER (WHERE cause = 'residual') AS residual,
    sum(amount) FILTER (WHERE cause NOT IN ('logs', 'residual', 'bill')) AS causes, max(tokens) FILTER (WHERE cause = 'bill') AS bill_tokens,
    sum(amount) FILTER (WHERE cause IN ('logs', 'window', 'retries', 'only in the logs')) AS logged,
    sum(tokens) FILTER (WHERE cause IN ('logs', 'window', 'retries', 'only in the logs', 'unpriced')) AS logged_tokens,
    sum(requests) FILTER (WHERE grade = 'unknown') AS unknown, sum(low) AS low, CASE WHEN count(high) = count(low) THEN sum(high) END AS high,
      bool_or(by_request) AS by_request
  FROM bridge
  GROUP BY currency
),
names AS (
  SELECT string_agg(DISTINCT CASE WHEN is_unlogged THEN coalesce(bill_model, 'no model') END, ', ') AS only_bill FROM cells WHERE NOT by_request AND has_model
),
others AS (
  SELECT string_agg(DISTINCT model, ', ') AS only_logs FROM placed WHERE NOT by_request AND counted_in AND NOT is_joint
),
matched AS (
  SELECT count(DISTINCT bill_id) FILTER (WHERE NOT is_unlogged) AS matched, count(DISTINCT bill_id) AS billed
  FROM cells JOIN (SELECT cell, bill_id FROM billed) AS ids ON bill_cell = cell
),
hours AS (
  SELECT column1 AS hour FROM (VALUES {% for hour in range(-14, 15) %}({{ hour }}){{ "" if loop.last else ", " }}{% endfor %})
),
steps AS (
-- tokens of the logs by time, for each hour that the bill's periods could be off
  SELECT hour, counted - CAST(hour * {{ 60 * minute }} AS BIGINT) / width AS step, sum({{ tokens("t") }}) AS tokens
  FROM placed CROSS JOIN hours CROSS JOIN (SELECT width FROM facts) AS facts
  WHERE NOT by_request AND counted IS NOT NULL AND NOT is_fallback AND (NOT has_model OR bill_has IS NOT NULL)
  GROUP BY hour, step
),
spans AS (
  SELECT since, max(until) AS until FROM lines WHERE category = 'usage' AND request_id IS NULL GROUP BY since
),
marks AS (
  SELECT hour, step, tokens, CAST(NULL AS BIGINT) AS begins, CAST(NULL AS BIGINT) AS ends FROM steps
  UNION ALL
  SELECT hour, arrow_cast(since, 'Int64') / width, 0, arrow_cast(since, 'Int64') / width, arrow_cast(until, 'Int64') / width
  FROM spans CROSS JOIN hours CROSS JOIN (SELECT width FROM facts) AS facts
),
latest AS (
  SELECT hour, step, tokens, max(begins) OVER (PARTITION BY hour ORDER BY step) AS begins FROM marks
),
sums AS (
  SELECT hour, begins, sum(tokens) AS tokens FROM latest
  JOIN (SELECT arrow_cast(since, 'Int64') / width AS began,
    arrow_cast(until, 'Int64') / width AS ended FROM spans CROSS JOIN (SELECT width FROM facts) AS facts) AS bounds
    ON begins = began AND step < ended
  GROUP BY hour, begins
),
periods AS (
  SELECT arrow_cast(since, 'Int64') / width AS began, sum(CASE WHEN by_class THEN b_input + b_cached + b_write + b_output ELSE b_total END) AS tokens
  FROM billed CROSS JOIN (SELECT width FROM facts) AS facts
  GROUP BY since, width
),
distances AS (
  SELECT hour, sum(abs(periods.tokens - coalesce(sums.tokens, 0))) AS distance, count(*) AS periods, sum(periods.tokens) AS tokens
  FROM sums JOIN periods ON begins = began
  GROUP BY hour
),
nearest AS (
  SELECT max(hour) FILTER (WHERE rank = 1) AS hour, max(distance) FILTER (WHERE rank = 1) AS distance,
    max(distance) FILTER (WHERE hour = 0) AS as_read, max(periods) AS periods, max(tokens) AS tokens
  FROM (SELECT *, row_number() OVER (ORDER BY distance, abs(hour), hour) AS rank FROM distances)
)
SELECT 1 AS position, coalesce(currency, '') AS part, 'proof' AS code,
  concat('proof: logs ', {{ plain("logs") }}, ' + causes ', {{ plain("causes") }}, ' + residual ', {{ plain("residual") }}, ' = bill ',
    {{ plain("bill") }}, ' ', currency) AS text, CAST(NULL AS BIGINT) AS count
FROM totals
UNION ALL
SELECT 2, coalesce(currency, ''), 'coverage', concat('the logs hold ', {{ percent("logged", "usual") }}, ' % of what the bill asks for usage',
  CASE WHEN bill_tokens > 0 THEN concat(', and ', {{ percent("logged_tokens", "bill_tokens") }}, ' % of its tokens') ELSE ', which has no tokens' END), NULL
FROM totals WHERE usual <> 0
UNION ALL
SELECT 3, '', 'matched', concat('the bill names requests: ', CAST(matched AS VARCHAR), ' of ', CAST(billed AS VARCHAR),
  ' are in the logs; --missing lists the others'), CAST(billed - matched AS BIGINT)
FROM matched CROSS JOIN facts WHERE by_request
UNION ALL
SELECT 4, '', 'outside_periods', concat('attempts outside the bill''s periods are in no row',
  CASE WHEN outside_money IS NOT NULL THEN concat(', though they cost ', {{ plain("outside_cost") }}, ' ', outside_money, ': does the bill lack days?') END), CAST(outside AS BIGINT) FROM outside WHERE outside > 0
UNION ALL
SELECT 5, '', 'undated', 'attempts without a time are in no row', CAST(undated AS BIGINT) FROM outside WHERE undated > 0
UNION ALL
SELECT 6, '', 'other_currency', 'attempts are priced in a currency that the bill has not: --currency converts them by the book''s rates',
  CAST(other_money AS BIGINT) FROM outside WHERE other_money > 0
UNION ALL
SELECT 7, '', 'model_names', concat('models that only the bill has: ', coalesce(only_bill, 'none'), '; that only the logs have: ',
  coalesce(only_logs, 'none'), '; where two are one, give the book an alias'), NULL
FROM names CROSS JOIN others WHERE only_bill IS NOT NULL OR only_logs IS NOT NULL
UNION ALL
SELECT 8, coalesce(currency, ''), 'unknown_usage',
  concat('requests without usage cost at least ', {{ plain("low") }}, CASE WHEN high IS NOT NULL THEN concat(' and at most ', {{ plain("high") }}) END,
    ' ', currency,
  CASE WHEN high IS NULL THEN ', and nothing bounds them' WHEN residual BETWEEN low AND high THEN '; the residual is within' ELSE '; the residual is not within' END), CAST(unknown AS BIGINT)
FROM totals WHERE unknown > 0 AND NOT by_request
UNION ALL
SELECT 9, '', 'shift', concat('the bill''s periods fit the logs best when they are shifted by ', CAST(hour AS VARCHAR), ' hours: tokens are then off by ',
  {{ percent("distance", "tokens") }}, ' % in its periods, instead of ', {{ percent("as_read", "tokens") }}, ' %; see --tz and --shift'), NULL
FROM nearest WHERE hour <> 0 AND $shift = 0 AND periods > 2 AND 2 * distance < as_read
{% if by == "line" or by == "model" %}
UNION ALL
SELECT 10, '', 'no_{{ by }}', 'the bill has no {{ by }}s to tell it by', NULL FROM facts WHERE NOT by_request AND NOT has_{{ by }}
{% endif %}
-- step: remarks
SELECT code, text, count FROM remarks ORDER BY position, part
-- step: notes
{% set allowed = "greatest(CAST($tolerance AS DECIMAL(38, 12)), CAST(abs(CAST(bill AS DECIMAL(38, 12))) * CAST($tolerance_share AS DECIMAL(19, 12)) AS DECIMAL(38, 12)))" %}
{% if missing %}
WITH charged AS (
  SELECT {{ key[0].value }} AS id, timestamp, {{ charge_at("timestamp") }} AS charge, model_name, role, source_file, source_offset,
    {{ said_fallback }} AS said_fallback
  FROM {{ attempts }}
  WHERE coalesce(attempt_number = attempts, true)
),
unmatched AS (
  SELECT charged.*, charge['rule'] AS rule, charge['uncached_tokens'] + charge['cached_tokens'] + charge['write_5m_tokens'] + charge['write_1h_tokens'] + coalesce(charge['output_tokens'], 0) AS tokens
  FROM charged CROSS JOIN facts
  LEFT JOIN (SELECT DISTINCT bill_id FROM billed) AS named ON id = bill_id
  WHERE by_request AND bill_id IS NULL
    AND NOT coalesce(said_fallback, CASE WHEN has_gateway THEN role NOT LIKE '%gateway%' WHEN has_engine THEN role NOT LIKE '%engine%' END, false)
    AND coalesce(arrow_cast(timestamp, 'Int64') / width >= first_step AND arrow_cast(timestamp, 'Int64') / width < end_step, first_step IS NULL)
)
SELECT 'only in the bill' AS side, bill_id AS request_id, said_since AS timestamp, cells.model, TRY_CAST(b_tokens AS BIGINT) AS tokens,
  CAST(cells.k AS DECIMAL(38, 12)) AS amount, cells.currency, '' AS place, 0 AS source_offset
FROM cells JOIN (SELECT cell, bill_id FROM billed) AS ids ON bill_cell = cell
WHERE by_request AND is_unlogged
UNION ALL
SELECT 'only in the logs', id, timestamp, coalesce({{ book_name }}, lower(model_name)), tokens, CAST(round(charge['cost'], 12) AS DECIMAL(38, 12)),
  charge['currency'], source_file, source_offset
FROM unmatched
-- step: listed
SELECT 'warning' AS severity, side, request_id, timestamp, model, tokens, amount, currency
FROM listed
ORDER BY {{ sort }}side, abs(amount) DESC NULLS LAST, timestamp, request_id, place, source_offset
{{ limit }}
{% elif by == "cause" %}
SELECT
  CASE
    WHEN grade = 'residual' AND abs(amount) > {{ allowed }} THEN 'error'
    WHEN grade = 'warning' AND amount <> 0 OR grade = 'unknown' AND requests > 0 THEN 'warning'
    ELSE 'info' END AS severity,
  name AS cause, amount, CAST(amount AS DOUBLE) / nullif(CAST(bill AS DOUBLE), 0) AS share, TRY_CAST(tokens AS BIGINT) AS tokens,
    CAST(requests AS BIGINT) AS requests, CAST(bill_rows AS BIGINT) AS bill_rows,
  CASE WHEN amount IS NULL THEN CAST(round(low, 12) AS DECIMAL(38, 12)) END AS low,
    CASE WHEN amount IS NULL THEN CAST(round(high, 12) AS DECIMAL(38, 12)) END AS high, currency, basis
FROM bridge
ORDER BY {{ sort }}currency NULLS LAST, position
{{ limit }}
{% else %}
{% set logs = "cause IN ('logs', 'window', 'retries')" %}
{% set claims = "cause IN ('dropped', 'overwritten', 'truncation')" %}
{% set prices = "cause IN ('unpriced', 'unknown', 'gone', 'cache class', 'tier', 'price', 'rounding')" %}
{% set extras = "cause IN ('credits', 'taxes', 'adjustments', 'purchases')" %}
WITH known AS (
  SELECT DISTINCT currency FROM lines
),
summed AS (
  SELECT {{ by }}, effects.currency, sum(amount) AS bill, coalesce(sum(amount) FILTER (WHERE {{ logs }}), {{ nothing }}) AS logs,
    coalesce(sum(amount) FILTER (WHERE {{ claims }}), {{ nothing }}) AS claims,
    coalesce(sum(amount) FILTER (WHERE {{ prices }}), {{ nothing }}) AS prices, coalesce(sum(amount) FILTER (WHERE {{ extras }}), {{ nothing }}) AS extras,
    coalesce(sum(amount) FILTER (WHERE cause IN ('only in the bill', 'only in the logs')), {{ nothing }}) AS one_sided,
    sum(tokens) FILTER (WHERE {{ logs }} OR cause = 'unpriced') AS log_tokens, CASE WHEN count(*) = count(tokens) THEN sum(tokens) END AS bill_tokens
  FROM effects
  JOIN known ON effects.currency IS NOT DISTINCT FROM known.currency
  GROUP BY {{ by }}, effects.currency
),
shown AS (
  SELECT {{ by }}, currency, log_tokens, bill_tokens, CAST(logs AS DOUBLE) / nullif(CAST(bill - extras AS DOUBLE), 0) AS coverage,
{% for name, sum in [("bill", "bill"), ("up_to_logs", "logs"), ("up_to_claims", "logs + claims"), ("up_to_prices", "logs + claims + prices"), ("up_to_others", "logs + claims + prices + one_sided + extras")] %}
    CAST(round({{ sum }}, 12) AS DECIMAL(38, 12)) AS {{ name }}{{ "" if loop.last else "," }}
{% endfor %}
  FROM summed
)
SELECT CASE WHEN abs(bill - up_to_others) > {{ allowed }} THEN 'error' ELSE 'info' END AS severity, {{ by }}, bill, up_to_logs AS logs,
  CAST(up_to_claims - up_to_logs AS DECIMAL(38, 12)) AS claims, CAST(up_to_prices - up_to_claims AS DECIMAL(38, 12)) AS prices,
  CAST(up_to_others - up_to_prices AS DECIMAL(38, 12)) AS other, CAST(bill - up_to_others AS DECIMAL(38, 12)) AS residual,
  CAST(bill - up_to_logs AS DECIMAL(38, 12)) AS difference, coverage,
  TRY_CAST(bill_tokens AS BIGINT) AS bill_tokens, TRY_CAST(coalesce(log_tokens, 0) AS BIGINT) AS log_tokens,
  CAST(log_tokens AS DOUBLE) / nullif(CAST(bill_tokens AS DOUBLE), 0) AS token_coverage, currency
FROM shown
ORDER BY {{ sort }}{{ "" if by == "day" else "bill DESC, " }}{{ by }} NULLS LAST, currency NULLS LAST
{{ limit }}
{% endif %}
