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
{% set keys = dimensions | map(attribute="key") | join(", ") %}
{% set part = keys ~ ", " if dimensions else "" %}
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
listed AS (
  SELECT {{ part }}
    count(*) FILTER (WHERE unknown) AS unknown_tokens,
    array_agg(arrived) AS arrivals, array_agg(CAST(1 AS BIGINT)) AS ones,
    array_agg(counted_at) AS times, array_agg(tokens) AS amounts
  FROM read
{% if dimensions %}
  GROUP BY {{ keys }}
{% endif %}
),
found AS (
  SELECT *,
    CASE position WHEN 1 THEN fullest_minute(arrivals, ones) WHEN 2 THEN fullest(arrivals, ones, 60000)
      ELSE fullest(arrivals, ones, 10000) END AS requests,
    CASE position WHEN 1 THEN fullest_minute(times, amounts) WHEN 2 THEN fullest(times, amounts, 60000)
      ELSE fullest(times, amounts, 10000) END AS tokens
  FROM listed
  CROSS JOIN (VALUES (1, 'calendar minute'), (2, 'any 60 s'), (3, 'any 10 s')) AS spans (position, span)
)
SELECT
{% for dimension in dimensions %}
  {{ dimension.label }} AS {{ dimension.name }},
{% endfor %}
  span,
  requests[1] AS requests, arrow_cast(requests[2], 'Timestamp(Nanosecond, Some("UTC"))') AS requests_at,
  tokens[1] AS tokens, arrow_cast(tokens[2], 'Timestamp(Nanosecond, Some("UTC"))') AS tokens_time,
  unknown_tokens
FROM found
WHERE arrivals IS NOT NULL
ORDER BY {{ order }}position
{{ limit }}
