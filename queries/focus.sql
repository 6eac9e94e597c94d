-- title: FOCUS
-- question: What was spent, as FOCUS 1.2 rows that FinOps tools read?
-- example: focus --month 2025-06 logs/
-- example: focus --by tenant --account acct-7 --provider example-cloud --month 2025-06 --format csv logs/
-- sampled: refused
-- param: prices book | the price book, prices.toml; also [prices] book in the config
-- param: currency text | convert all to this currency, by the dated rates of the price book
-- param: by dimensions | more to split rows by; each is a tag
-- param: account text | BillingAccountId: the account that the provider bills
-- param: account_name text | BillingAccountName
-- param: provider text | ProviderName where the log names no provider
-- param: publisher text | PublisherName; the provider where it is not given
-- param: issuer text | InvoiceIssuerName; the provider where it is not given
-- param: service text | ServiceName; the provider and "inference" where it is not given
-- column: AvailabilityZone | null: logs do not name it
-- column: BilledCost | cost at the price in force, every decimal kept; the sum of the rows is the cost of the report `cost`
-- column: BillingAccountId | --account; null where it is not given, which FOCUS does not allow
-- column: BillingAccountName | --account-name
-- column: BillingCurrency | currency of the price; with --currency the one that all is converted to
-- column: BillingPeriodEnd | end of the local month, exclusive
-- column: BillingPeriodStart | start of the local month
-- column: CapacityReservation* | null: nothing is reserved
-- column: ChargeCategory | Usage
-- column: ChargeClass | null: no correction; `cost correct --focus` writes those
-- column: ChargeDescription | model, class of tokens, and the price that was used, or why it was free
-- column: ChargeFrequency | Usage-Based
-- column: ChargePeriodEnd | end of the local day, exclusive
-- column: ChargePeriodStart | start of the local day that the attempt began in
-- column: CommitmentDiscount* | null: no discount is for a commitment
-- column: ConsumedQuantity | tokens, or attempts for the fee per request
-- column: ConsumedUnit | Tokens or Requests
-- column: ContractedCost | as BilledCost
-- column: ContractedUnitPrice | as ListUnitPrice
-- column: EffectiveCost | as BilledCost: nothing is bought in advance
-- column: InvoiceId | null: `reconcile` compares with an invoice
-- column: InvoiceIssuerName | --issuer, else the provider
-- column: ListCost | as BilledCost: the price book is the list
-- column: ListUnitPrice | for 1,000,000 tokens, or for a request; where one charge has several prices, as of long prompts, what they come to
-- column: PricingCategory | Standard
-- column: PricingQuantity | millions of tokens, or requests
-- column: PricingUnit | 1000000 Tokens or Requests
-- column: ProviderName | the provider that the log names, else --provider; null where neither is known, which FOCUS does not allow
-- column: PublisherName | --publisher, else the provider
-- column: Region* | null: logs do not name it
-- column: ResourceId | the model as it was called
-- column: ResourceName | the same
-- column: ResourceType | Model
-- column: ServiceCategory | AI and Machine Learning
-- column: ServiceName | --service, else the provider and "inference"
-- column: ServiceSubcategory | Generative AI
-- column: SkuId | model of the price book, and class of tokens
-- column: SkuMeter | input tokens, cached input tokens, cache write tokens (5 minutes, 1 hour, or both in one request), output tokens, or requests
-- column: SkuPriceDetails | JSON of model, class of tokens, tier and length
-- column: SkuPriceId | SkuId, with the service tier and the length that the price is for
-- column: SubAccountId | business line; null where none is known
-- column: SubAccountName | business line
-- column: SubAccountType | Business line
-- column: Tags | JSON of the business line and what is given by --by; what is not known is left out
-- column: x_Attempts attempts | upstream calls behind the row: one call is in several rows, one for each class
-- column: x_PriceBook | name and hash of the price book
-- column: x_PriceRule | which price, and how it matched
-- explode: SubAccountId
-- times: utc
{% macro json_text(text) -%}
'"' || regexp_replace(replace(replace({{ text }}, '\', '\\'), '"', '\"'), '[\x00-\x1f]', ' ', 'g') || '"'
{%- endmacro %}
{% macro money(amount) -%}
rtrim(rtrim(CAST(CAST({{ amount }} AS DECIMAL(38, 6)) AS VARCHAR), '0'), '.')
{%- endmacro %}
{% macro exact(amount) -%}
rtrim(rtrim(CAST(CAST({{ amount }} AS DECIMAL(38, 18)) AS VARCHAR), '0'), '.')
{%- endmacro %}
{% set tags = dimensions | map(attribute="name") | list %}
WITH read AS (
  SELECT
    local_period(timestamp, 'day', $zone, $week_start) AS day,
    business_line, coalesce(provider, CAST($provider AS VARCHAR)) AS provider, model_name,
{% for dimension in dimensions %}
    {{ dimension.text }} AS tag_{{ loop.index }},
{% endfor %}
    {{ charge_at("timestamp") }} AS charge
  FROM {{ attempts }}
),
charged AS (
  SELECT day, business_line, provider, model_name, {% for tag in tags %}tag_{{ loop.index }}, {% endfor %}
    charge['state'] AS state, charge['reason'] AS reason, charge['rule'] AS rule, charge['currency'] AS currency,
    charge['uncached_tokens'] AS uncached_tokens, charge['cached_tokens'] AS cached_tokens, charge['output_tokens'] AS output_tokens,
    charge['write_5m_tokens'] AS write_5m_tokens, charge['write_1h_tokens'] AS write_1h_tokens,
    CASE WHEN charge['write_5m_tokens'] > 0 AND charge['write_1h_tokens'] > 0 THEN 'both' WHEN charge['write_1h_tokens'] > 0 THEN '1h'
      WHEN charge['write_5m_tokens'] > 0 THEN '5m' END AS writes,
    charge['input_cost'] AS input_cost, charge['cached_cost'] AS cached_cost, charge['write_cost'] AS write_cost,
    charge['output_cost'] AS output_cost, charge['request_cost'] AS request_cost, charge['cost'] AS cost,
    charge['low'] AS low, charge['high'] AS high
  FROM read
)
SELECT day, business_line, provider, model_name, {% for tag in tags %}tag_{{ loop.index }}, {% endfor %}state, reason, rule, currency,
  count(*) AS attempts, count(high) AS bounded, sum(cost) AS cost, sum(low) AS low, sum(high) AS high,
  sum(uncached_tokens) AS tokens_1, sum(input_cost) AS cost_1, count(*) FILTER (WHERE uncached_tokens > 0) AS attempts_1,
  sum(cached_tokens) AS tokens_2, sum(cached_cost) AS cost_2, count(*) FILTER (WHERE cached_tokens > 0) AS attempts_2,
{% for kind in ["5m", "1h", "both"] %}
  sum(write_5m_tokens + write_1h_tokens) FILTER (WHERE writes = '{{ kind }}') AS tokens_{{ loop.index + 2 }},
  sum(write_cost) FILTER (WHERE writes = '{{ kind }}') AS cost_{{ loop.index + 2 }}, count(*) FILTER (WHERE writes = '{{ kind }}') AS attempts_{{ loop.index + 2 }},
{% endfor %}
  sum(output_tokens) AS tokens_6, sum(output_cost) AS cost_6, count(*) FILTER (WHERE output_tokens > 0) AS attempts_6,
  count(*) FILTER (WHERE request_cost <> 0) AS tokens_7, sum(request_cost) AS cost_7, count(*) FILTER (WHERE request_cost <> 0) AS attempts_7
FROM charged
GROUP BY day, business_line, provider, model_name, {% for tag in tags %}tag_{{ loop.index }}, {% endfor %}state, reason, rule, currency
-- step: groups
{% set classes = ["input tokens", "cached input tokens", "cache write tokens, 5 minutes", "cache write tokens, 1 hour", "cache write tokens, 5 minutes and 1 hour", "output tokens", "requests"] %}
WITH classes AS (
  SELECT *,
    CASE position {% for class in classes %}WHEN {{ loop.index }} THEN tokens_{{ loop.index }} {% endfor %}END AS quantity,
    CASE position {% for class in classes %}WHEN {{ loop.index }} THEN coalesce(cost_{{ loop.index }}, 0) {% endfor %}END AS amount,
    CASE position {% for class in classes %}WHEN {{ loop.index }} THEN attempts_{{ loop.index }} {% endfor %}END AS calls,
-- the price without its day and how the model matched
    regexp_replace(regexp_replace(coalesce(rule, model_name, ''), ' from [0-9]{4}-[0-9]{2}-[0-9]{2}[^ ,(]*', ''), ' \((alias|pattern) [^)]*\)', '') AS price
  FROM groups
  CROSS JOIN (VALUES {% for class in classes %}({{ loop.index }}, '{{ class }}'){{ "" if loop.last else ", " }}{% endfor %}) AS listed (position, class)
  WHERE state IN ('priced', 'free') AND day IS NOT NULL
)
SELECT *, regexp_replace(price, ', (tier|above) .*$', '') AS sku,
  regexp_match(price, ', tier (.*?)(, above|$)')[1] AS tier, regexp_match(price, ', (above .*)$')[1] AS length
FROM classes
WHERE quantity > 0 OR amount <> 0
-- step: charges
WITH found AS (
  SELECT 0 AS place, coalesce(currency, '') AS part, 'proof' AS code, CAST(NULL AS BIGINT) AS count,
    'proof: the rows add up to ' || {{ exact("sum(amount)") }} || coalesce(' ' || currency, '') || ', the costs of all attempts with a time to ' || {{ exact("max(charged)") }} AS text
  FROM charges
  JOIN (SELECT currency AS of_currency, sum(cost) AS charged FROM groups WHERE day IS NOT NULL GROUP BY currency) AS sums ON (of_currency IS NOT DISTINCT FROM currency)
  GROUP BY currency
  UNION ALL
  SELECT 1 AS place, state || ', ' || coalesce(reason, '') || ', ' || coalesce(currency, '') AS part, state || '_left_out' AS code, sum(attempts) AS count,
    'attempts are in no row, their cost is ' || CASE state WHEN 'unknown' THEN 'not known: ' ELSE 'not priced: ' END || coalesce(reason, 'no reason') || '; '
    || CASE WHEN sum(bounded) = sum(attempts) THEN coalesce({{ money("sum(low)") }}, '0') || ' to ' || {{ money("sum(high)") }}
      ELSE 'at least ' || coalesce({{ money("sum(low)") }}, '0') END || coalesce(' ' || currency, '') AS text
  FROM groups
  WHERE state NOT IN ('priced', 'free')
  GROUP BY state, reason, currency
  UNION ALL
  SELECT 2, coalesce(currency, ''), 'no_charge_period', sum(attempts),
    'attempts are in no row, they have no time; they cost ' || {{ money("sum(cost)") }} || coalesce(' ' || currency, '')
  FROM groups
  WHERE state IN ('priced', 'free') AND day IS NULL
  GROUP BY currency
  UNION ALL
  SELECT 3, '', 'focus_open', NULL, 'FOCUS wants a value in BillingAccountId: give --account' WHERE $account IS NULL
  UNION ALL
  SELECT 4, '', 'focus_open', count(*), 'rows have no ProviderName, which FOCUS wants: their log names none, give --provider' FROM charges WHERE provider IS NULL HAVING count(*) > 0
  UNION ALL
  SELECT 5, '', 'elsewhere', count(*), 'shared costs and GPU pools are in no row: `allocate` has them' FROM (SELECT name FROM shared_costs UNION ALL SELECT pool FROM pools) HAVING count(*) > 0
)
SELECT code, text, CAST(count AS BIGINT) AS count FROM found ORDER BY place, part
-- step: notes
SELECT
  CAST(NULL AS VARCHAR) AS "AvailabilityZone",
  amount AS "BilledCost",
  CAST($account AS VARCHAR) AS "BillingAccountId",
  CAST($account_name AS VARCHAR) AS "BillingAccountName",
  currency AS "BillingCurrency",
  local_period(local_period(day, 'month', $zone, $week_start) + arrow_cast(2764800000000000, 'Duration(Nanosecond)'), 'month', $zone, $week_start) AS "BillingPeriodEnd",
  local_period(day, 'month', $zone, $week_start) AS "BillingPeriodStart",
  CAST(NULL AS VARCHAR) AS "CapacityReservationId",
  CAST(NULL AS VARCHAR) AS "CapacityReservationStatus",
  'Usage' AS "ChargeCategory",
  CAST(NULL AS VARCHAR) AS "ChargeClass",
  coalesce(model_name, 'unknown model') || ', ' || class || ', ' || CASE state WHEN 'free' THEN 'free: ' || coalesce(reason, '') ELSE coalesce(rule, '') END AS "ChargeDescription",
  'Usage-Based' AS "ChargeFrequency",
-- the day after has begun 30 hours later, also where clocks change
  local_period(day + arrow_cast(108000000000000, 'Duration(Nanosecond)'), 'day', $zone, $week_start) AS "ChargePeriodEnd",
  day AS "ChargePeriodStart",
  CAST(NULL AS VARCHAR) AS "CommitmentDiscountCategory",
  CAST(NULL AS VARCHAR) AS "CommitmentDiscountId",
  CAST(NULL AS VARCHAR) AS "CommitmentDiscountName",
  CAST(NULL AS DECIMAL(38, 6)) AS "CommitmentDiscountQuantity",
  CAST(NULL AS VARCHAR) AS "CommitmentDiscountStatus",
  CAST(NULL AS VARCHAR) AS "CommitmentDiscountType",
  CAST(NULL AS VARCHAR) AS "CommitmentDiscountUnit",
  CAST(quantity AS DECIMAL(38, 2)) AS "ConsumedQuantity",
  CASE position WHEN 7 THEN 'Requests' ELSE 'Tokens' END AS "ConsumedUnit",
  amount AS "ContractedCost",
  {% set unit_price = "CAST(CASE position WHEN 7 THEN amount / CAST(quantity AS DECIMAL(20, 0)) ELSE amount / CAST(quantity AS DECIMAL(20, 0)) * CAST(1000000 AS DECIMAL(7, 0)) END AS DECIMAL(38, 18))" %}
  {{ unit_price }} AS "ContractedUnitPrice",
  amount AS "EffectiveCost",
  CAST(NULL AS VARCHAR) AS "InvoiceId",
  coalesce(CAST($issuer AS VARCHAR), provider) AS "InvoiceIssuerName",
  amount AS "ListCost",
  {{ unit_price }} AS "ListUnitPrice",
  'Standard' AS "PricingCategory",
  CASE position WHEN 7 THEN CAST(quantity AS DECIMAL(38, 6)) ELSE CAST(CAST(quantity AS DECIMAL(20, 0)) * CAST('0.000001' AS DECIMAL(7, 6)) AS DECIMAL(38, 6)) END AS "PricingQuantity",
  CASE position WHEN 7 THEN 'Requests' ELSE '1000000 Tokens' END AS "PricingUnit",
  provider AS "ProviderName",
  coalesce(CAST($publisher AS VARCHAR), provider) AS "PublisherName",
  CAST(NULL AS VARCHAR) AS "RegionId",
  CAST(NULL AS VARCHAR) AS "RegionName",
  model_name AS "ResourceId",
  model_name AS "ResourceName",
  CASE WHEN model_name IS NOT NULL THEN 'Model' END AS "ResourceType",
  'AI and Machine Learning' AS "ServiceCategory",
  coalesce(CAST($service AS VARCHAR), concat_ws(' ', provider, 'inference')) AS "ServiceName",
  'Generative AI' AS "ServiceSubcategory",
  sku || ', ' || class AS "SkuId",
  class AS "SkuMeter",
  '{"Model":' || {{ json_text("sku") }} || ',"TokenClass":' || {{ json_text("class") }}
    || coalesce(',"Tier":' || {{ json_text("tier") }}, '') || coalesce(',"Length":' || {{ json_text("length") }}, '')
    || CASE state WHEN 'free' THEN ',"Free":true' ELSE '' END || '}' AS "SkuPriceDetails",
  price || ', ' || class || CASE state WHEN 'free' THEN ', free' ELSE '' END AS "SkuPriceId",
  business_line AS "SubAccountId",
  business_line AS "SubAccountName",
  CASE WHEN business_line IS NOT NULL THEN 'Business line' END AS "SubAccountType",
  nullif('{' || concat_ws(',', '"business_line":' || {{ json_text("business_line") }}{% for tag in tags %}, {{ json_text("'" ~ tag | replace('"', '') | replace("'", "''") ~ "'") }} || ':' || {{ json_text("tag_" ~ loop.index) }}{% endfor %}) || '}', '{}') AS "Tags",
  calls AS "x_Attempts",
  CAST($book AS VARCHAR) AS "x_PriceBook",
  rule AS "x_PriceRule"
FROM charges
ORDER BY {{ sort }}day, business_line NULLS LAST, provider NULLS LAST, model_name NULLS LAST, {% for tag in tags %}tag_{{ loop.index }} NULLS LAST, {% endfor %}currency NULLS LAST, state DESC, reason NULLS LAST, rule NULLS LAST, position
{{ limit }}
