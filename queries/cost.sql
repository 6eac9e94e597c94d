-- title: Cost
-- question: What did each business line use, what did it cost, and what of that is not known?
-- example: cost --month 2025-06 --prices prices.toml logs/
-- example: cost --month 2025-06 --by business-line,model --subtotals --places 2 --prices prices.toml logs/
-- example: cost --since 2025-06-02 --until 2025-06-30 --every week --change --tz Europe/Berlin --prices prices.toml logs/
-- example: cost --month 2025-06 --as-of 2025-07-01 --prices prices.toml logs/
-- lookback: change
-- param: by dimensions business-line | what to group by
-- param: every choice none day week month | a row for each local day, week or month, instead of one for the whole range
-- param: subtotals flag false | with two or more dimensions: a row for all rows of one value of the first, too
-- param: change flag false | compare with the period before: the month before for --month, a range of the same length, or with --every the period before in the logs
-- param: as_of time | what the same attempts would cost at the prices in force then
-- param: method choice tokens logged | price the tokens by the price book, or take the cost that the log names
-- param: places integer 12 0..12 | round money to so many decimals, by largest remainder: the rows add up to the rounded total
-- param: prices book | the price book, prices.toml; also [prices] book in the config
-- param: currency text | convert to this currency by the dated rates of the price book; a logged cost stays as it is
-- column: period | local start of the day, week or month
-- column: level | row, or subtotal: all rows of one value of the first dimension
-- column: requests requests | requests; each is counted once, with its first attempt
-- column: attempts attempts | calls that the requests took; duplicates are dropped, retries and fallbacks are not
-- column: failed requests | requests whose last attempt failed
-- column: cost | cost of the attempts whose cost is known; null when none is, or only that of free ones, while others are not
-- column: currency | the currency of all money in the row; different ones are never added
-- column: share ratio | cost / cost of all rows of that currency, to the sixth decimal by largest remainder
-- column: previous_cost | cost in the period before; null where the logs do not reach it
-- column: change | cost - previous_cost
-- column: volume | of the change, by more or fewer tokens: previous_cost x (tokens / tokens before - 1), tokens as in cost_per_1m_tokens; all but price where there were none before
-- column: mix | of the change, the rest: dearer or cheaper models, classes of tokens and tiers; volume + mix + price = change
-- column: price | of the change, by new prices: cost - cost of the same attempts at the prices just before the period began (today's, where there was none)
-- column: cost_as_of | cost of the attempts at the prices of --as-of, those without one then left out
-- column: difference | cost_as_of - cost; null where priced_once is not 0
-- column: priced_once attempts | attempts that have a cost, in this currency, at only one of the two times
-- column: cost_per_1k_requests | 1000 x cost / requests, without those whose only attempt has no known cost
-- column: cost_per_1m_tokens | 1000000 x cost / tokens of the attempts whose cost is known
-- column: free attempts | attempts that are not billed: answers from the response cache, or by a rule of the config; they cost 0
-- column: unknown attempts | attempts whose usage is not known, or not plausible (with --method logged: that name no cost): in no cost
-- column: unpriced attempts | attempts with known usage, but without a price: in no cost
-- column: unpriced_tokens tokens | tokens of the unpriced
-- column: cost_low | the least that all attempts can have cost: cost + what is known of the unknown + the unpriced at the cheapest price of the book
-- column: cost_high | the most: the unknown with as many tokens as they were allowed, the unpriced at the dearest price; null where nothing bounds it
-- column: uncached_tokens tokens | input tokens that neither came from a prompt cache nor were written to one; null when none is known
-- column: cached_tokens tokens | input tokens read from a prompt cache
-- column: cache_write_tokens tokens | tokens written to a prompt cache
-- column: output_tokens tokens | output tokens, reasoning included
-- column: reasoning_tokens tokens | of the output, reasoning
-- column: gpu_seconds s | (prefill + decode time) / batch size, of the attempts that log all three; null when none does
-- column: gpu_known attempts | attempts that log all three
-- detail: failed free unknown unpriced unpriced_tokens cost_low cost_high uncached_tokens cached_tokens cache_write_tokens output_tokens reasoning_tokens gpu_seconds gpu_known
-- total: cost requests attempts failed uncached_tokens cached_tokens cache_write_tokens output_tokens reasoning_tokens gpu_known free unknown unpriced unpriced_tokens previous_cost change volume mix price cost_as_of difference priced_once

{% set has_period = every != "none" or change %}
{% set time = ("period, " if has_period else "") ~ ("is_before, " if change else "") %}
{% set period = "local_period(timestamp, '" ~ every ~ "', $zone, $week_start)" if every != "none" else "CASE WHEN timestamp < $since THEN $before ELSE $since END" %}
{% set classes = ["uncached_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens"] %}
{% set counts = classes + ["requests", "attempts", "failed", "gpu_known", "free", "unknown", "unpriced", "unpriced_tokens",
  "costed_requests", "costed_tokens", "unbounded"] + (["priced_once"] if as_of else []) %}
{# low and high are of the attempts without a cost #}
{% set rounded = ["low", "high"] + (["cost_as_of"] if as_of else []) %}
{% set amounts = ["cost"] + rounded + (["price"] if change else []) %}
{% set shown = ["cost", "low", "high", "share"] + (["previous_cost", "change", "volume", "mix", "price"] if change else []) + (["cost_as_of"] if as_of else []) %}
{% set a_total = "PARTITION BY currency" ~ (", is_before" if change else "") %}
{% macro sums(names, type) %}{% for name in names %}CAST(sum({{ name }}) AS {{ type }}) AS {{ name }}, {% endfor %}{% endmacro %}
WITH read AS (
  SELECT
    {{ keyed }}
{% if has_period %}
    {{ period }} AS period,
{% endif %}
{% if change %}
    coalesce(timestamp < $since, false) AS is_before,
    {{ charge_at(("arrow_cast($since, 'Timestamp(Nanosecond, Some(\"UTC\"))')" if every == "none" else period) ~ " - arrow_cast(1, 'Duration(Nanosecond)')") }} AS charge_before,
{% endif %}
{% if as_of %}
    {{ charge_at("$as_of") }} AS charge_then,
{% endif %}
{% if method == "logged" %}
    TRY_CAST(cost_logged AS DECIMAL(38, 18)) AS cost, upper(currency) AS currency,
    CASE WHEN cost_logged IS NULL THEN 'unknown' ELSE 'priced' END AS state,
    CAST(NULL AS DECIMAL(38, 18)) AS low, CAST(NULL AS DECIMAL(38, 18)) AS high,
{% endif %}
    model_name, failed, attempt_number = 1 AS is_first, attempt_number = attempts AS is_last, attempts = 1 AS is_only,
    CASE WHEN reasoning_tokens BETWEEN 0 AND 1000000000 THEN reasoning_tokens END AS reasoning_tokens,
    prefill_time_ms >= 0 AND decode_time_ms >= 0 AND batch_size > 0 AS is_timed, (prefill_time_ms + decode_time_ms) / nullif(batch_size, 0) / 1000 AS busy_seconds,
    {{ charge_at("timestamp") }} AS charge
  FROM {{ attempts }}
),
charged AS (
  SELECT * EXCEPT (is_timed, busy_seconds), CASE WHEN is_timed AND busy_seconds < 1e9 THEN busy_seconds END AS gpu_seconds,
{% if method == "tokens" %}
    charge['cost'] AS cost, charge['currency'] AS currency, charge['state'] AS state, charge['low'] AS low, charge['high'] AS high,
{% endif %}
    charge['uncached_tokens'] AS uncached_tokens, charge['cached_tokens'] AS cached_tokens, charge['output_tokens'] AS output_tokens,
    coalesce(charge['write_5m_tokens'] + charge['write_1h_tokens'], charge['write_5m_tokens'], charge['write_1h_tokens']) AS cache_write_tokens
  FROM read
{% if change and every != "none" %}
-- of the period that $since cuts, only what follows is asked for
  WHERE NOT (is_before AND period >= local_period($since, '{{ every }}', $zone, $week_start))
{% endif %}
),
known AS (
  SELECT *,
{% if change %}
    CASE WHEN charge_before['currency'] = currency THEN cost - charge_before['cost'] END AS price,
{% endif %}
{% if as_of %}
    CASE WHEN coalesce(charge_then['currency'] = currency, true) THEN charge_then['cost'] END AS cost_as_of,
{% endif %}
    coalesce(uncached_tokens, 0) + coalesce(cached_tokens, 0) + coalesce(cache_write_tokens, 0) + coalesce(output_tokens, 0) AS tokens
  FROM charged
),
summed AS (
  SELECT
    {{ keys }}{{ time }}currency,
    CASE WHEN state <> 'unpriced' THEN NULL WHEN model_name IS NULL THEN charge['reason'] WHEN charge['reason'] = 'no price for this model' THEN model_name
      ELSE concat(model_name, ': ', charge['reason']) END AS unpriced_model,
    count(*) AS attempts,
    count(*) FILTER (WHERE is_first) AS requests,
    count(*) FILTER (WHERE is_last AND failed) AS failed,
    sum(uncached_tokens) AS uncached_tokens, sum(cached_tokens) AS cached_tokens, sum(cache_write_tokens) AS cache_write_tokens,
    sum(output_tokens) AS output_tokens, sum(reasoning_tokens) AS reasoning_tokens,
    exact_sum(gpu_seconds) AS gpu_seconds, count(gpu_seconds) AS gpu_known,
    count(*) FILTER (WHERE state = 'free') AS free,
    count(*) FILTER (WHERE state = 'unknown') AS unknown,
    count(*) FILTER (WHERE state = 'unpriced') AS unpriced,
    coalesce(sum(tokens) FILTER (WHERE state = 'unpriced'), 0) AS unpriced_tokens,
    count(*) FILTER (WHERE is_first AND (cost IS NOT NULL OR NOT is_only)) AS costed_requests,
    sum(tokens) FILTER (WHERE cost IS NOT NULL) AS costed_tokens,
    count(*) FILTER (WHERE cost IS NULL AND high IS NULL) AS unbounded,
{% if as_of %}
    count(*) FILTER (WHERE (cost IS NULL) <> (cost_as_of IS NULL)) AS priced_once,
    sum(cost_as_of) AS cost_as_of,
{% endif %}
{% if change %}
    sum(price) AS price,
{% endif %}
    sum(cost) AS cost,
    sum(low) FILTER (WHERE cost IS NULL) AS low, sum(high) FILTER (WHERE cost IS NULL) AS high
  FROM known
  GROUP BY {{ keys }}{{ time }}currency, unpriced_model
)
{% if method == "logged" %}
-- what names no cost may name no currency either: where there is but one, it stands beside the rest of its group
SELECT * EXCEPT (currency),
  CASE WHEN cost IS NOT NULL THEN currency
    ELSE coalesce(currency, CASE WHEN min(currency) OVER () = max(currency) OVER () THEN min(currency) OVER () END) END AS currency
FROM summed
{% else %}
SELECT * FROM summed
{% endif %}
-- step: usage
WITH grouped AS (
  SELECT {{ keys }}{{ time }}currency, {{ sums(counts, "BIGINT") }}{{ sums(amounts, "DECIMAL(38, 18)") }}exact_sum(gpu_seconds) AS gpu_seconds
  FROM usage
  GROUP BY {{ keys }}{{ time }}currency
)
SELECT {{ keys }}{{ time }}currency, {{ counts | join(", ") }}, gpu_seconds,
{% for name in rounded %}
  round_together({{ name }}, $places) OVER side AS {{ name }},
{% endfor %}
{% if change %}
  CAST(CAST(price AS DECIMAL(38, {{ places }})) AS DECIMAL(38, 12)) AS price,
{% endif %}
-- that of free attempts alone says nothing where others are not known
  CASE WHEN attempts > free + unknown + unpriced OR unknown + unpriced = 0 THEN coalesce(round_together(cost, $places) OVER side, 0) END AS cost
FROM grouped
WINDOW side AS ({{ a_total }} ORDER BY {{ keys }}{{ time }}currency)
-- step: groups
WITH
{% if change %}
periods AS (
  SELECT *, lag(period) OVER (ORDER BY period) AS period_before
  FROM (SELECT DISTINCT period, is_before FROM groups WHERE period IS NOT NULL)
),
earlier AS (
  SELECT {{ keys }}period AS earlier_period, currency AS earlier_currency, attempts AS attempts_before, costed_tokens AS tokens_before, cost AS cost_before FROM groups
),
paired AS (
-- what is in one of two periods only is compared, too
  SELECT {{ keys }}period, currency, {{ counts | join(", ") }}, gpu_seconds, cost, low, high, price,
    CAST(0 AS BIGINT) AS attempts_before, CAST(NULL AS BIGINT) AS tokens_before, CAST(NULL AS DECIMAL(38, 12)) AS cost_before
  FROM groups
  WHERE NOT is_before
  UNION ALL
  SELECT {{ keys }}period, earlier_currency, {% for name in counts %}{{ "NULL" if name in classes else "0" }}, {% endfor %}NULL, NULL, NULL, NULL, NULL, attempts_before, tokens_before, cost_before
  FROM earlier
  JOIN periods ON earlier_period = period_before
  WHERE NOT is_before
),
joined AS (
  SELECT {{ keys }}period, currency, {{ sums(counts + ["attempts_before", "tokens_before"], "BIGINT") }}
    {{ sums(["cost", "low", "high", "price", "cost_before"], "DECIMAL(38, 12)") }}exact_sum(gpu_seconds) AS gpu_seconds
  FROM paired
  GROUP BY {{ keys }}period, currency
),
timed AS (
  SELECT joined.*, period_before FROM joined LEFT JOIN periods ON joined.period = periods.period
),
costed AS (
  SELECT * EXCEPT (cost, price),
    CASE WHEN attempts = 0 THEN 0 ELSE cost END AS cost, {{ "coalesce(price, 0)" if method == "tokens" else "price" }} AS price,
    CASE WHEN period_before IS NULL THEN NULL WHEN attempts_before = 0 THEN 0 ELSE cost_before END AS previous_cost
  FROM timed
),
differing AS (
  SELECT *, cost - previous_cost AS change,
    CASE WHEN coalesce(tokens_before, 0) = 0 THEN cost - previous_cost - coalesce(price, 0)
      ELSE CAST(CAST(previous_cost AS DECIMAL(76, 12)) * CAST(coalesce(costed_tokens, 0) - tokens_before AS DECIMAL(76, 0))
        / CAST(tokens_before AS DECIMAL(76, 0)) AS DECIMAL(38, {{ places }})) END AS volume
  FROM costed
),
compared AS (
  SELECT * EXCEPT (volume, price), CASE WHEN change IS NOT NULL THEN CAST(volume AS DECIMAL(38, 12)) END AS volume,
    CASE WHEN change IS NOT NULL THEN price END AS price,
    CAST(change - coalesce(volume, 0) - coalesce(price, 0) AS DECIMAL(38, 12)) AS mix
  FROM differing
),
{% else %}
compared AS (
  SELECT * FROM groups
),
{% endif %}
leaves AS (
  SELECT *, 'row' AS level,
    CASE WHEN cost IS NOT NULL AND min(cost) OVER (PARTITION BY currency) >= 0
      THEN apportion(1, cost, 6) OVER (PARTITION BY currency ORDER BY {{ keys }}{{ "period, " if has_period }}currency) END AS share
  FROM compared
)
SELECT {{ keys }}{{ "period, " if has_period }}currency, level, {{ counts | join(", ") }}, {{ shown | join(", ") }}, gpu_seconds
FROM leaves
{% if subtotals and dimensions | length > 1 %}
UNION ALL
SELECT key_1, {% for dimension in dimensions[1:] %}NULL, {% endfor %}{{ "period, " if has_period }}currency, 'subtotal',
  {{ sums(counts, "BIGINT") }}{{ sums(shown, "DECIMAL(38, 12)") }}exact_sum(gpu_seconds)
FROM leaves
GROUP BY key_1, {{ "period, " if has_period }}currency
{% endif %}
-- step: rows
WITH everything AS (
  SELECT currency, CAST(CAST(sum(cost) AS DECIMAL(38, {{ places }})) AS DECIMAL(38, 12)) AS cost, coalesce(sum(low), 0) AS low, coalesce(sum(high), 0) AS high,
    CAST(sum(unknown + unpriced) AS BIGINT) AS without_cost, CAST(sum(unbounded) AS BIGINT) AS unbounded
  FROM usage
{% if change %}
  WHERE NOT is_before
{% endif %}
  GROUP BY currency
),
added AS (
  SELECT currency, sum(cost) AS cost FROM rows WHERE level = 'row' GROUP BY currency
),
unpriced AS (
  SELECT *, row_number() OVER (ORDER BY tokens DESC, model) AS place
  FROM (SELECT unpriced_model AS model, sum(unpriced_tokens) AS tokens, sum(unpriced) AS attempts
    FROM usage WHERE unpriced_model IS NOT NULL{{ " AND NOT is_before" if change }} GROUP BY unpriced_model)
),
notes AS (
  SELECT 1 AS place, 'proof' AS code,
    concat('proof: the rows add up to ', readable(added.cost), ' ', coalesce(everything.currency, 'of an unknown currency'), ', all attempts to ', readable(everything.cost),
      ' ', coalesce(everything.currency, 'of an unknown currency'), ': rest ', CASE WHEN everything.cost = added.cost THEN '0' ELSE readable(everything.cost - added.cost) END) AS text,
    CAST(NULL AS BIGINT) AS count
  FROM everything
  JOIN added ON (everything.currency IS NOT DISTINCT FROM added.currency)
  WHERE everything.cost IS NOT NULL
  UNION ALL
  SELECT 2, 'unpriced', concat('no price: ', string_agg(concat(model, ' (', readable(tokens), ' tokens)'), ', ' ORDER BY place) FILTER (WHERE place <= 5),
    CASE WHEN count(*) > 5 THEN concat(' and ', readable(count(*) - 5), ' more') ELSE '' END, ': these attempts are in no cost'), CAST(sum(attempts) AS BIGINT)
  FROM unpriced
  HAVING count(*) > 0
  UNION ALL
  SELECT 3, 'bounds', concat('attempts whose cost is not known; with them it is ',
    CASE WHEN unbounded > 0 THEN concat('at least ', readable(coalesce(cost, 0) + low))
      ELSE concat(readable(coalesce(cost, 0) + low), ' to ', readable(coalesce(cost, 0) + high)) END, ' ', coalesce(currency, 'of an unknown currency')), without_cost
  FROM everything
  WHERE without_cost > 0
  UNION ALL
  SELECT 4, 'elsewhere', 'shared costs and GPU pools are not in these rows: `allocate` has them', count(*)
  FROM (SELECT name FROM shared_costs UNION ALL SELECT pool FROM pools)
  HAVING count(*) > 0
{% if change %}
  UNION ALL
  SELECT 5, 'change', 'nothing is known of a period before', NULL FROM rows HAVING count(*) > 0 AND count(previous_cost) = 0
{% endif %}
)
SELECT code, text, count FROM notes ORDER BY place, text
-- step: notes
SELECT
  {{ labelled }}
{% if has_period %}
  period,
{% endif %}
{% if subtotals and dimensions | length > 1 %}
  level,
{% endif %}
  requests, attempts, failed, cost, currency, CAST(share AS DOUBLE) AS share,
{% if change %}
  previous_cost, change, volume, mix, price,
{% endif %}
{% if as_of %}
  cost_as_of, CASE WHEN priced_once = 0 THEN cost_as_of - cost END AS difference, priced_once,
{% endif %}
  CAST(cost * 1000 / nullif(costed_requests, 0) AS DECIMAL(38, 12)) AS cost_per_1k_requests,
  CAST(cost * 1000000 / nullif(costed_tokens, 0) AS DECIMAL(38, 12)) AS cost_per_1m_tokens,
  free, unknown, unpriced, unpriced_tokens,
  coalesce(cost, 0) + coalesce(low, 0) AS cost_low,
  CASE WHEN unbounded = 0 THEN coalesce(cost, 0) + coalesce(high, 0) END AS cost_high,
  uncached_tokens, cached_tokens, cache_write_tokens, output_tokens, reasoning_tokens, gpu_seconds, gpu_known
FROM rows
ORDER BY {{ order }}{{ "period, " if has_period }}currency, level
{{ limit }}
