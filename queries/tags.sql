-- title: Cost by tag
-- question: What did the requests with each tag cost, without counting those with several tags twice?
-- example: tags --month 2025-06 --prices prices.toml logs/
-- example: tags --month 2025-06 --policy overlap --by business-line --prices prices.toml logs/
-- param: by dimensions | what to group by, besides the tag
-- param: policy choice primary split overlap | requests with several tags: all to the first tag; divided evenly; or in full to each, with a negative row `overlap` for what that counts too often
-- param: places integer 12 0..12 | round money to so many decimals, by largest remainder: the rows add up to the rounded total
-- param: prices book | the price book, prices.toml; also [prices] book in the config
-- param: currency text | convert to this currency by the dated rates of the price book
-- column: tag | tag of the requests; tags are a JSON list, or stand between commas
-- column: item | tag; no tag; overlap: minus what is in the rows of several tags
-- column: requests requests | requests; with split whole ones, by largest remainder; all columns that add up follow the policy
-- column: attempts attempts | calls that the requests took
-- column: without_cost attempts | of them those whose cost is not known: see `cost`
-- column: tokens tokens | input and output tokens of the attempts whose cost is known; null when there are none
-- column: cost | cost of the attempts whose cost is known; null when there are none
-- column: currency | the currency of the row; different ones are never added
-- column: share ratio | cost / cost of all rows of that currency, overlap included; with overlap they add up to 1 with its negative share
-- total: cost requests attempts without_cost tokens

{% set counts = ["requests", "attempts", "without_cost", "tokens"] %}
WITH read AS (
  SELECT {{ keyed }}tags, attempt_number, {{ charge_at("timestamp") }} AS charge FROM {{ attempts }}
),
charged AS (
  SELECT {{ keys }}tags, attempt_number, charge['currency'] AS currency, charge['cost'] AS cost, charge['state'] = 'priced' AS is_priced,
    coalesce(charge['uncached_tokens'], 0) + coalesce(charge['cached_tokens'], 0) + coalesce(charge['write_5m_tokens'], 0)
      + coalesce(charge['write_1h_tokens'], 0) + coalesce(charge['output_tokens'], 0) AS tokens
  FROM read
)
SELECT {{ keys }}tags, currency, count(*) FILTER (WHERE attempt_number = 1) AS requests, count(*) AS attempts,
  count(*) FILTER (WHERE cost IS NULL) AS without_cost, sum(tokens) FILTER (WHERE cost IS NOT NULL) AS tokens,
-- that of free attempts alone says nothing where others are not known
  CASE WHEN count(*) FILTER (WHERE is_priced) > 0 OR count(cost) = count(*) THEN sum(cost) END AS cost
FROM charged
GROUP BY {{ keys }}tags, currency
-- step: usage
WITH summed AS (
  SELECT *, sum(cost) OVER (PARTITION BY currency) AS total FROM usage
),
numbered AS (
  SELECT {{ keys }}currency, {{ counts | join(", ") }}, trim(tags) AS tags, rank() OVER (ORDER BY {{ keys }}tags, currency) AS id,
    CASE WHEN cost IS NOT NULL THEN coalesce(apportion(CAST(total AS DECIMAL(38, 12)), cost, 12) OVER (PARTITION BY currency ORDER BY {{ keys }}tags), 0) END AS cost
  FROM summed
),
listed AS (
-- of a JSON list of texts only `","` parts: a tag may hold a comma
  SELECT *, string_to_array(regexp_replace(regexp_replace(tags, '^\[\s*"?|"?\s*\]$', '', 'g'),
    CASE WHEN tags LIKE '[%' AND tags LIKE '%"%' THEN '"\s*,\s*"' ELSE ',' END, chr(31), 'g'), chr(31)) AS list
  FROM numbered
),
spread AS (
  SELECT id, unnest(list) AS tag, unnest(range(1, CAST(array_length(list) AS BIGINT) + 1)) AS place FROM listed
),
tagged AS (
  SELECT id, tag, min(place) AS place FROM (SELECT id, replace(trim(tag), '\"', '"') AS tag, place FROM spread) WHERE tag <> '' GROUP BY id, tag
),
ranked AS (
  SELECT id, tag, row_number() OVER (PARTITION BY id ORDER BY place) AS number FROM tagged
),
joined AS (
  SELECT numbered.* EXCEPT (tags, id), numbered.id, tag, coalesce(number, 1) AS number FROM numbered LEFT JOIN ranked ON numbered.id = ranked.id
),
placed AS (
{% if policy == "split" %}
  SELECT {{ keys }}tag, false AS is_overlap, currency, apportion(cost, 1, 12) OVER parts AS cost,
    {% for name in counts %}CAST({{ name }} AS DECIMAL(38, 9)) / count(*) OVER (PARTITION BY id) AS {{ name }}{{ ", " if not loop.last }}{% endfor %}

  FROM joined
  WINDOW parts AS (PARTITION BY id ORDER BY number)
{% else %}
  SELECT {{ keys }}tag, false AS is_overlap, currency, cost, {{ counts | join(", ") }} FROM joined{{ " WHERE number = 1" if policy == "primary" }}
{% endif %}
{% if policy == "overlap" %}
  UNION ALL
  SELECT {{ keys }}NULL, true, currency, -cost, {% for name in counts %}-{{ name }}{{ ", " if not loop.last }}{% endfor %} FROM joined WHERE number > 1
{% endif %}
),
grouped AS (
  SELECT {{ keys }}tag, is_overlap, currency, {% for name in counts %}sum({{ name }}) AS {{ name }}, {% endfor %}sum(cost) AS cost
  FROM placed
  GROUP BY {{ keys }}tag, is_overlap, currency
),
totalled AS (
-- the overlap is negative, but no weight is below 0
  SELECT *, sum(cost) OVER side AS total, count(cost) OVER side AS costs, least(0, floor(min(cost) OVER side)) AS base
    {% for name in counts %}, sum({{ name }}) OVER side AS all_{{ name }}{% endfor %}

  FROM grouped
  WINDOW side AS (PARTITION BY currency)
)
SELECT {{ keys }}tag, is_overlap, currency,
{% for name in counts %}
  {{ "CASE WHEN " ~ name ~ " IS NOT NULL THEN CAST(coalesce(apportion(round(all_" ~ name ~ "), " ~ name ~ ", 0) OVER side, 0) AS BIGINT) END" if policy == "split" else "CAST(" ~ name ~ " AS BIGINT)" }} AS {{ name }},
{% endfor %}
  CASE WHEN cost IS NOT NULL
    THEN CAST(base + coalesce(apportion(CAST(total - costs * base AS DECIMAL(38, {{ places }})), cost - base, $places) OVER side, 0) AS DECIMAL(38, 12)) END AS cost
FROM totalled
WINDOW side AS (PARTITION BY currency ORDER BY {{ keys }}is_overlap, tag)
-- step: rows
WITH everything AS (
  SELECT currency, CAST(CAST(sum(cost) AS DECIMAL(38, {{ places }})) AS DECIMAL(38, 12)) AS cost FROM usage GROUP BY currency
),
added AS (
  SELECT currency, sum(cost) AS cost FROM rows GROUP BY currency
)
SELECT 'proof' AS code,
  concat('proof: the rows add up to ', readable(added.cost), ' ', coalesce(everything.currency, 'of an unknown currency'), ', all attempts to ', readable(everything.cost),
    ' ', coalesce(everything.currency, 'of an unknown currency'), ': rest ', CASE WHEN everything.cost = added.cost THEN '0' ELSE readable(everything.cost - added.cost) END) AS text,
  CAST(NULL AS BIGINT) AS count
FROM everything
JOIN added ON (everything.currency IS NOT DISTINCT FROM added.currency)
WHERE everything.cost IS NOT NULL
ORDER BY text
-- step: notes
SELECT
  {{ labelled }}
  tag, CASE WHEN is_overlap THEN 'overlap' WHEN tag IS NULL THEN 'no tag' ELSE 'tag' END AS item,
  requests, attempts, without_cost, tokens, cost, currency,
  CAST(cost AS DOUBLE) / nullif(CAST(sum(cost) OVER (PARTITION BY currency) AS DOUBLE), 0) AS share
FROM rows
ORDER BY {{ order }}is_overlap, tag, currency
{{ limit }}
