-- title: Peaks
-- question: How many requests and tokens came at most in a minute, by the clock and in any 60 or 10 seconds?
-- example: peaks logs/
-- example: peaks --by tenant --tokens-at end logs/
-- param: by dimensions | what to group by
-- param: tokens_at choice start end | count the tokens of a request when it arrives, or when its answer ends
-- column: span | a minute of the clock, or any stretch of so many seconds that ends with a request
-- column: requests requests | requests in the fullest of them
-- column: requests_at | when that was: its start by the clock, else its end
-- column: tokens tokens | input and output tokens in the one that had most
-- column: tokens_time | when that was
-- column: unknown_tokens requests | requests whose tokens are not known, which are in no sum of tokens
WITH read AS (
  SELECT
{% for dimension in dimensions %}
    {{ dimension.value }} AS {{ dimension.key }},
{% endfor %}
    timestamp AS arrived,
    {{ "coalesce(completed_at, timestamp)" if tokens_at == "end" else "timestamp" }} AS counted_at,
    coalesce(input_tokens, 0) + coalesce(output_tokens, 0) AS tokens,
    input_tokens IS NULL AND output_tokens IS NULL AS unknown
  FROM {{ logs }}
  WHERE timestamp IS NOT NULL
),
{% set keys = dimensions | map(attribute="key") | join(", ") %}
{% set part = keys ~ ", " if dimensions else "" %}
{% set partition = "PARTITION BY " ~ keys if dimensions else "" %}
counted AS (
  SELECT {{ part }} arrived, counted_at, unknown,
    local_window(arrived, 60000, 0, $zone) AS minute,
    local_window(counted_at, 60000, 0, $zone) AS token_minute,
    count(*) OVER (PARTITION BY {{ part }} local_window(arrived, 60000, 0, $zone)) AS in_minute,
    sum(tokens) OVER (PARTITION BY {{ part }} local_window(counted_at, 60000, 0, $zone)) AS tokens_in_minute,
    count(*) OVER ({{ partition }} ORDER BY arrived RANGE BETWEEN INTERVAL '59.999999999 seconds' PRECEDING AND CURRENT ROW) AS in_60,
    sum(tokens) OVER ({{ partition }} ORDER BY counted_at RANGE BETWEEN INTERVAL '59.999999999 seconds' PRECEDING AND CURRENT ROW) AS tokens_in_60,
    count(*) OVER ({{ partition }} ORDER BY arrived RANGE BETWEEN INTERVAL '9.999999999 seconds' PRECEDING AND CURRENT ROW) AS in_10,
    sum(tokens) OVER ({{ partition }} ORDER BY counted_at RANGE BETWEEN INTERVAL '9.999999999 seconds' PRECEDING AND CURRENT ROW) AS tokens_in_10
  FROM read
),
grouped AS (
  SELECT {{ part }}
    count(*) AS requests,
    count(*) FILTER (WHERE unknown) AS unknown_tokens,
    max(in_minute) AS in_minute, first_value(minute ORDER BY in_minute DESC, minute) AS in_minute_at,
    max(tokens_in_minute) AS tokens_in_minute, first_value(token_minute ORDER BY tokens_in_minute DESC, token_minute) AS tokens_in_minute_at,
    max(in_60) AS in_60, first_value(arrived ORDER BY in_60 DESC, arrived) AS in_60_at,
    max(tokens_in_60) AS tokens_in_60, first_value(counted_at ORDER BY tokens_in_60 DESC, counted_at) AS tokens_in_60_at,
    max(in_10) AS in_10, first_value(arrived ORDER BY in_10 DESC, arrived) AS in_10_at,
    max(tokens_in_10) AS tokens_in_10, first_value(counted_at ORDER BY tokens_in_10 DESC, counted_at) AS tokens_in_10_at
  FROM counted
{% if dimensions %}
  GROUP BY {{ keys }}
{% endif %}
)
SELECT
{% for dimension in dimensions %}
  {{ dimension.label }} AS {{ dimension.name }},
{% endfor %}
  span,
  CASE position WHEN 1 THEN in_minute WHEN 2 THEN in_60 ELSE in_10 END AS requests,
  CASE position WHEN 1 THEN in_minute_at WHEN 2 THEN in_60_at ELSE in_10_at END AS requests_at,
  CASE position WHEN 1 THEN tokens_in_minute WHEN 2 THEN tokens_in_60 ELSE tokens_in_10 END AS tokens,
  CASE position WHEN 1 THEN tokens_in_minute_at WHEN 2 THEN tokens_in_60_at ELSE tokens_in_10_at END AS tokens_time,
  unknown_tokens
FROM grouped
CROSS JOIN (VALUES (1, 'calendar minute'), (2, 'any 60 s'), (3, 'any 10 s')) AS spans (position, span)
ORDER BY {{ order }}position
{{ limit }}
