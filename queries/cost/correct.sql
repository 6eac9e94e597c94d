-- title: Corrections
-- question: What has changed in a closed month since it was stored, and is it usage that came late or another price?
-- example: cost correct --closed 2025-06.json logs/
-- example: cost correct --closed 2025-06.json --focus --account acct-7 --format csv logs/
-- sampled: refused
-- whole: months
-- param: closed table ! | what `cost close` wrote, as json, jsonl or parquet; its figures stay as they are
-- param: prices book | the price book, prices.toml; also [prices] book in the config
-- param: currency text | convert all to this currency, as when the month was closed
-- param: fail_on choice error warning never | exit with 3 where a closed month has changed
-- param: focus flag false | write the corrections as FOCUS 1.2 rows, billed in the month of today
-- param: account text | BillingAccountId of FOCUS rows
-- param: account_name text | BillingAccountName
-- param: provider text | ProviderName, PublisherName and InvoiceIssuerName of FOCUS rows
-- column: severity | warning: a change; error: a month that is not compared, as the notes say
-- column: month | the closed month
-- column: business_line | who owes it
-- column: model | the model as it was called
-- column: price | model of the price book, tier and length; the whole rule where the same rules hold now and then; the state of what is not priced
-- column: currency | currency of the price
-- column: reason | usage: other tokens or calls than then, as of late records; price: the same tokens at another price; both; priced since, no longer priced: the book had no price then, or has none now; counts: at no cost; not compared: another zone, a part of the month, or nothing stored
-- column: closed_attempts attempts | upstream calls as stored
-- column: attempts attempts | upstream calls now
-- column: closed_tokens tokens | tokens of all classes as stored; null where none is known
-- column: tokens tokens | tokens of all classes now
-- column: closed_cost | cost as stored; null where it was not known
-- column: cost | cost now
-- column: correction | cost - closed_cost, what is not known taken as 0: all corrections and the stored costs together are the costs now
-- column: usage_effect | of the correction, the change in tokens, class by class, at the stored price; all of it where the price book is the same
-- column: price_effect | of the correction, the rest: another price, or another mix where one rule has several prices, as of long prompts
-- column: closed_book | the price book when the month was closed
-- column: book | the price book now
-- column: AvailabilityZone | null: logs do not name it
-- column: BilledCost | the correction
-- column: BillingAccountId | --account; null where it is not given, which FOCUS does not allow
-- column: BillingAccountName | --account-name
-- column: BillingCurrency | currency of the price; with --currency the one that all is converted to
-- column: BillingPeriodEnd | end of the local month of today, in which the correction is billed
-- column: BillingPeriodStart | start of that month
-- column: CapacityReservation* | null: nothing is reserved
-- column: ChargeCategory | Usage
-- column: ChargeClass | Correction
-- column: ChargeDescription | what was corrected, and why
-- column: ChargeFrequency | Usage-Based
-- column: ChargePeriodEnd | end of the closed month
-- column: ChargePeriodStart | start of the closed month
-- column: CommitmentDiscount* | null: no discount is for a commitment
-- column: ConsumedQuantity | null: a correction need not be tokens at one price
-- column: ConsumedUnit | null: a correction need not be tokens at one price
-- column: ContractedCost | the correction
-- column: ContractedUnitPrice | null: a correction need not be tokens at one price
-- column: EffectiveCost | the correction
-- column: InvoiceId | null: `reconcile` compares with an invoice
-- column: InvoiceIssuerName | --provider
-- column: ListCost | the correction
-- column: ListUnitPrice | null: a correction need not be tokens at one price
-- column: PricingCategory | Standard
-- column: PricingQuantity | null: a correction need not be tokens at one price
-- column: PricingUnit | null: a correction need not be tokens at one price
-- column: ProviderName | --provider
-- column: PublisherName | --provider
-- column: Region* | null: logs do not name it
-- column: ResourceId | the model as it was called
-- column: ResourceName | the same
-- column: ResourceType | Model
-- column: ServiceCategory | AI and Machine Learning
-- column: ServiceName | the provider and "inference"
-- column: ServiceSubcategory | Generative AI
-- column: SkuId | null: a correction need not be tokens at one price
-- column: SkuMeter | null: a correction need not be tokens at one price
-- column: SkuPriceDetails | null: a correction need not be tokens at one price
-- column: SkuPriceId | null: a correction need not be tokens at one price
-- column: SubAccountId | business line; null where none is known
-- column: SubAccountName | business line
-- column: SubAccountType | Business line
-- column: Tags | JSON of the business line
-- column: x_Attempts attempts | upstream calls now - as stored
-- column: x_PriceBook | name and hash of the price book now
-- column: x_PriceRule | price, as without --focus
-- explode: business_line SubAccountId
-- times: utc
-- total: correction usage_effect price_effect
{% set classes = [
  {"tokens": "uncached_tokens", "cost": "input_cost"}, {"tokens": "cached_tokens", "cost": "cached_cost"},
  {"tokens": "write_tokens", "cost": "write_cost"}, {"tokens": "output_tokens", "cost": "output_cost"},
  {"tokens": "priced_attempts", "cost": "request_cost"}] %}
WITH read AS (
  SELECT local_period(timestamp, 'month', $zone, $week_start) AS month, business_line, model_name, attempt_number,
    {{ charge_at("timestamp") }} AS charge
  FROM {{ attempts }}
)
SELECT substr(CAST(arrow_cast(local_part(month, 'date', $zone, $week_start), 'Date32') AS VARCHAR), 1, 7) AS month, month AS started,
  business_line, model_name AS model, charge['state'] AS state, charge['rule'] AS rule, charge['currency'] AS currency,
  count(*) FILTER (WHERE attempt_number = 1) AS requests, count(*) AS attempts, count(*) FILTER (WHERE charge['state'] = 'priced') AS priced_attempts,
  sum(charge['uncached_tokens']) AS uncached_tokens, sum(charge['cached_tokens']) AS cached_tokens,
  sum(charge['write_5m_tokens'] + charge['write_1h_tokens']) AS write_tokens, sum(charge['output_tokens']) AS output_tokens,
{% for part in ["input", "cached", "write", "output", "request"] %}
  sum(charge['{{ part }}_cost']) FILTER (WHERE charge['cost'] IS NOT NULL) AS {{ part }}_cost,
{% endfor %}
  sum(charge['cost']) AS cost
FROM read
GROUP BY month, business_line, model_name, charge['state'], charge['rule'], charge['currency']
-- step: present
SELECT CAST(month AS VARCHAR) AS month, CAST(zone AS VARCHAR) AS zone, CAST(business_line AS VARCHAR) AS business_line, CAST(model AS VARCHAR) AS model,
  CAST(state AS VARCHAR) AS state, CAST(rule AS VARCHAR) AS rule, CAST(currency AS VARCHAR) AS currency, max(CAST(book AS VARCHAR)) AS book,
  sum(CAST(requests AS BIGINT)) AS requests, sum(CAST(attempts AS BIGINT)) AS attempts, coalesce(sum(CAST(attempts AS BIGINT)) FILTER (WHERE state = 'priced'), 0) AS priced_attempts,
  sum(CAST(uncached_tokens AS BIGINT)) AS uncached_tokens, sum(CAST(cached_tokens AS BIGINT)) AS cached_tokens,
  sum(CAST(write_5m_tokens AS BIGINT) + CAST(write_1h_tokens AS BIGINT)) AS write_tokens, sum(CAST(output_tokens AS BIGINT)) AS output_tokens,
{% for part in ["input", "cached", "write", "output", "request"] %}
  sum(CAST({{ part }}_cost AS DECIMAL(38, 18))) AS {{ part }}_cost,
{% endfor %}
  sum(CAST(cost AS DECIMAL(38, 18))) AS cost
FROM closed
GROUP BY month, zone, business_line, model, state, rule, currency
-- step: stored
WITH listed AS (
  SELECT month, min(zone) AS zone, max(book) AS book,
    local_period(arrow_cast(TRY_CAST(month || '-15T00:00:00' AS TIMESTAMP), 'Timestamp(Nanosecond, Some("UTC"))'), 'month', $zone, $week_start) AS started
  FROM stored
  GROUP BY month
),
ended AS (
  SELECT *, local_period(started + arrow_cast(2764800000000000, 'Duration(Nanosecond)'), 'month', $zone, $week_start) AS ended FROM listed
)
SELECT *, zone <> $zone AS is_elsewhere, coalesce($since > started, false) OR coalesce($until < ended, false) AS is_cut FROM ended
-- step: months
{% set sums = ["requests", "attempts", "priced_attempts", "uncached_tokens", "cached_tokens", "write_tokens", "output_tokens", "input_cost", "cached_cost", "write_cost", "output_cost", "request_cost", "cost"] %}
WITH sides AS (
  SELECT true AS is_closed, month, business_line, model, state, rule, currency, {{ sums | join(", ") }} FROM stored
  UNION ALL
  SELECT false, month, business_line, model, state, rule, currency, {{ sums | join(", ") }} FROM present
),
labelled AS (
-- the rule without its day and how the model matched
  SELECT sides.*, months.started, months.ended, months.book AS closed_book,
    CASE WHEN state = 'priced' THEN regexp_replace(regexp_replace(rule, ' from [0-9]{4}-[0-9]{2}-[0-9]{2}[^ ,(]*', ''), ' \((alias|pattern) [^)]*\)', '') ELSE state END AS label,
    CASE WHEN state = 'priced' THEN rule ELSE state END AS whole
  FROM sides
  JOIN months ON (sides.month IS NOT DISTINCT FROM months.month)
  WHERE NOT is_elsewhere AND NOT is_cut
),
ruled AS (
  SELECT *, bool_or(is_closed) OVER rule AND bool_or(NOT is_closed) OVER rule AS on_both,
    sum(CASE WHEN state = 'unpriced' THEN CASE WHEN is_closed THEN -attempts ELSE attempts END END) OVER (PARTITION BY month, business_line, model) AS more_unpriced
  FROM labelled
  WINDOW rule AS (PARTITION BY month, business_line, model, label, currency, whole)
),
priced AS (
-- where the same rules hold on both sides, each stands for itself
  SELECT *, CASE WHEN bool_and(on_both) OVER (PARTITION BY month, business_line, model, label, currency) THEN whole ELSE label END AS price FROM ruled
),
grouped AS (
  SELECT month, business_line, model, price, currency, min(state) AS state, min(started) AS started, min(ended) AS ended, min(closed_book) AS closed_book,
    bool_or(is_closed) AS was, bool_or(NOT is_closed) AS is_now, coalesce(min(more_unpriced), 0) AS more_unpriced,
{% for name in sums %}
    sum({{ name }}) FILTER (WHERE is_closed) AS closed_{{ name }}, sum({{ name }}) FILTER (WHERE NOT is_closed) AS {{ name }}{{ "" if loop.last else "," }}
{% endfor %}
  FROM priced
  GROUP BY month, business_line, model, price, currency
),
split AS (
  SELECT *, coalesce(cost, 0) - coalesce(closed_cost, 0) AS correction,
    state = 'priced' AND NOT was AND more_unpriced < 0 AS priced_since, state = 'priced' AND NOT is_now AND more_unpriced > 0 AS no_longer,
-- the same book has the same prices
    CASE WHEN closed_book = $book THEN coalesce(cost, 0) - coalesce(closed_cost, 0) ELSE
    {% for class in classes %}{{ "+ " if not loop.first }}CASE
      WHEN coalesce({{ class.tokens }}, 0) = coalesce(closed_{{ class.tokens }}, 0) THEN CAST(0 AS DECIMAL(38, 18))
      WHEN {{ class.tokens }} > 0 AND closed_{{ class.tokens }} > 0
        THEN CAST(coalesce(closed_{{ class.cost }}, 0) / CAST(closed_{{ class.tokens }} AS DECIMAL(20, 0)) * CAST({{ class.tokens }} - closed_{{ class.tokens }} AS DECIMAL(20, 0)) AS DECIMAL(38, 18))
      ELSE coalesce({{ class.cost }}, 0) - coalesce(closed_{{ class.cost }}, 0) END
    {% endfor %} END AS by_usage
  FROM grouped
)
SELECT *, CAST(CASE WHEN priced_since OR no_longer THEN 0 ELSE by_usage END AS DECIMAL(38, 18)) AS usage_effect,
  CAST(correction - CASE WHEN priced_since OR no_longer THEN 0 ELSE by_usage END AS DECIMAL(38, 18)) AS price_effect,
  {% for side in ["closed_", ""] %}CASE WHEN {{ side }}uncached_tokens IS NOT NULL OR {{ side }}output_tokens IS NOT NULL THEN
    coalesce({{ side }}uncached_tokens, 0) + coalesce({{ side }}cached_tokens, 0) + coalesce({{ side }}write_tokens, 0) + coalesce({{ side }}output_tokens, 0) END AS {{ side }}tokens,
  {% endfor %}
  {% for name in sums %}{{ "OR " if not loop.first }}coalesce({{ name }}, 0) <> coalesce(closed_{{ name }}, 0) {% endfor %} AS differs
FROM split
-- step: compared
{% macro money(amount) -%}
rtrim(rtrim(CAST(CAST({{ amount }} AS DECIMAL(38, 18)) AS VARCHAR), '0'), '.')
{%- endmacro %}
WITH found AS (
  SELECT 1 AS place, month || coalesce(currency, '') AS part, 'proof' AS code, CAST(NULL AS BIGINT) AS count,
    'proof: ' || coalesce(month, 'no month') || ', ' || {{ money("sum(coalesce(closed_cost, 0))") }} || ' stored + ' || {{ money("sum(correction)") }}
    || ' corrected = ' || {{ money("sum(coalesce(cost, 0))") }} || coalesce(' ' || currency, '') || ' now' AS text
  FROM compared
  WHERE cost IS NOT NULL OR closed_cost IS NOT NULL
  GROUP BY month, currency
  UNION ALL
  SELECT 2, month, 'other_zone', NULL, month || ' was closed in ' || zone || ', and its days are others here: give --tz ' || zone FROM months WHERE is_elsewhere
  UNION ALL
  SELECT 3, month, 'part_of_month', NULL, month || ' is not compared: the time range is only a part of it' FROM months WHERE is_cut
  UNION ALL
  SELECT 4, '', 'no_month', NULL, 'nothing is compared: the stored answer has no rows' WHERE NOT EXISTS (SELECT 1 FROM months)
  UNION ALL
  SELECT 5, month, 'other_book', NULL, month || ' was closed with another price book: ' || book || '; now it is ' || coalesce($book, 'none') FROM months WHERE book <> $book
)
SELECT code, text, count FROM found ORDER BY place, part
-- step: notes
{% if focus %}
{% set null_text = "CAST(NULL AS VARCHAR)" %}
{% set null_number = "CAST(NULL AS DECIMAL(38, 18))" %}
{% set line = "CASE WHEN business_line IS NOT NULL THEN '{\"business_line\":\"' || regexp_replace(replace(replace(business_line, '\\', '\\\\'), '\"', '\\\"'), '[\\x00-\\x1f]', ' ', 'g') || '\"}' END" %}
{% set month_of_today = "local_period($now, 'month', $zone, $week_start)" %}
{% set provider_name = "CAST($provider AS VARCHAR)" %}
{% set values = {
  "BilledCost": "correction", "BillingAccountId": "CAST($account AS VARCHAR)", "BillingAccountName": "CAST($account_name AS VARCHAR)", "BillingCurrency": "currency",
  "BillingPeriodEnd": "local_period(" ~ month_of_today ~ " + arrow_cast(2764800000000000, 'Duration(Nanosecond)'), 'month', $zone, $week_start)", "BillingPeriodStart": month_of_today,
  "ChargeCategory": "'Usage'", "ChargeClass": "'Correction'",
  "ChargeDescription": "'correction of ' || coalesce(month, 'no month') || ', ' || reason || ': ' || coalesce(model, 'unknown model') || ', ' || coalesce(price, '')",
  "ChargeFrequency": "'Usage-Based'", "ChargePeriodEnd": "ended", "ChargePeriodStart": "started",
  "CommitmentDiscountQuantity": "CAST(NULL AS DECIMAL(38, 6))", "ConsumedQuantity": "CAST(NULL AS DECIMAL(38, 2))", "ContractedCost": "correction", "ContractedUnitPrice": null_number,
  "EffectiveCost": "correction", "InvoiceIssuerName": provider_name, "ListCost": "correction", "ListUnitPrice": null_number, "PricingCategory": "'Standard'",
  "PricingQuantity": "CAST(NULL AS DECIMAL(38, 6))", "ProviderName": provider_name, "PublisherName": provider_name, "ResourceId": "model", "ResourceName": "model",
  "ResourceType": "CASE WHEN model IS NOT NULL THEN 'Model' END", "ServiceCategory": "'AI and Machine Learning'", "ServiceName": "concat_ws(' ', " ~ provider_name ~ ", 'inference')",
  "ServiceSubcategory": "'Generative AI'", "SubAccountId": "business_line", "SubAccountName": "business_line", "SubAccountType": "CASE WHEN business_line IS NOT NULL THEN 'Business line' END",
  "Tags": line, "x_Attempts": "CAST(coalesce(attempts, 0) - coalesce(closed_attempts, 0) AS BIGINT)", "x_PriceBook": "CAST($book AS VARCHAR)", "x_PriceRule": "price"} %}
SELECT
{% for name in ["AvailabilityZone", "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart",
  "CapacityReservationId", "CapacityReservationStatus", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd",
  "ChargePeriodStart", "CommitmentDiscountCategory", "CommitmentDiscountId", "CommitmentDiscountName", "CommitmentDiscountQuantity",
  "CommitmentDiscountStatus", "CommitmentDiscountType", "CommitmentDiscountUnit", "ConsumedQuantity", "ConsumedUnit", "ContractedCost",
  "ContractedUnitPrice", "EffectiveCost", "InvoiceId", "InvoiceIssuerName", "ListCost", "ListUnitPrice", "PricingCategory", "PricingQuantity",
  "PricingUnit", "ProviderName", "PublisherName", "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType", "ServiceCategory",
  "ServiceName", "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceDetails", "SkuPriceId", "SubAccountId", "SubAccountName", "SubAccountType",
  "Tags", "x_Attempts", "x_PriceBook", "x_PriceRule"] %}
  {{ values[name] if name in values else null_text }} AS "{{ name }}"{{ "" if loop.last else "," }}
{% endfor %}
{% else %}
SELECT CASE reason WHEN 'not compared' THEN 'error' ELSE 'warning' END AS severity, month, business_line, model, price, currency, reason,
  closed_attempts, attempts, closed_tokens, tokens, closed_cost, cost, correction, usage_effect, price_effect, closed_book, CAST($book AS VARCHAR) AS book
{% endif %}
FROM (SELECT *,
    CASE WHEN not_compared THEN 'not compared' WHEN priced_since THEN 'priced since' WHEN no_longer THEN 'no longer priced' WHEN usage_effect <> 0 AND price_effect <> 0 THEN 'usage and price'
      WHEN price_effect <> 0 THEN 'price' WHEN usage_effect <> 0 THEN 'usage' ELSE 'counts' END AS reason
  FROM (
    SELECT month, business_line, model, price, currency, started, ended, priced_since, no_longer, closed_attempts, attempts, closed_tokens, tokens,
      closed_cost, cost, correction, usage_effect, price_effect, closed_book, false AS not_compared
    FROM compared
    WHERE differs
    UNION ALL
    SELECT month, NULL, NULL, NULL, NULL, started, ended, false, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, book, true FROM months WHERE is_elsewhere OR is_cut
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, true WHERE NOT EXISTS (SELECT 1 FROM months)) AS listed) AS changed
{{ "WHERE correction <> 0" if focus }}
ORDER BY {{ sort }}month NULLS LAST, business_line NULLS LAST, model NULLS LAST, currency NULLS LAST, price NULLS LAST
{{ limit }}
