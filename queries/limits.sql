-- title: Limits
-- question: How close does each tenant come to a limit of tokens or requests per minute, and when is it over?
-- example: limits --limit-tokens 20000 logs/
-- example: limits --by model,tenant --limit-tokens 60000 --limit-requests 30 --tokens-at end logs/
-- sampled: refused
-- param: by dimensions tenant | what to group by: each group has the limits for itself
-- param: limit_tokens integer 1..1000000000000000 | tokens (input and output) that may be used in a minute of the clock
-- param: limit_requests integer 1..1000000000000000 | requests that may arrive in a minute of the clock
-- param: tokens_at choice start end | count the tokens of a request when it arrives, or when its answer ends
-- param: percentiles percentiles 50,95,99 | which percentiles to show
-- column: measure | tokens (input and output), or requests by their arrival; only what has a limit, if anything has
-- column: active_minutes min | minutes of the clock with requests that count
-- column: p* | percentile of the active minutes, by nearest rank
-- column: peak | the most in a minute of the clock
-- column: peak_at | the start of that minute; of equal ones the first
-- column: limit_per_minute | the limit; null if there is none
-- column: peak_of_limit ratio | peak / limit
-- column: minutes_over min | active minutes above the limit
-- column: first_over | start of the first of them
-- column: last_over | start of the last of them
-- column: arrived_over requests | requests that arrived in these minutes
-- column: counted requests | requests that are in these numbers
-- column: left_out requests | requests without a time, for tokens also those whose tokens are not known
-- column: status | ok, near (the peak is at least 80 % of the limit), over, or no limit; null if nothing is counted
WITH read AS (
  SELECT
    {{ keyed }}
    timestamp AS arrived,
    {{ "coalesce(" ~ ended ~ ", timestamp)" if tokens_at == "end" else "timestamp" }} AS counted_at,
    CASE WHEN input_tokens IS NOT NULL OR output_tokens IS NOT NULL
      THEN CAST(coalesce(input_tokens, 0) AS DECIMAL(38, 0)) + coalesce(output_tokens, 0) END AS tokens
  FROM {{ logs }}
)
SELECT
  {{ keys }}
  arrived, counted_at, count(*) AS requests, count(tokens) AS with_tokens, sum(tokens) AS tokens
FROM (
  SELECT
    {{ keys }}
    local_period(arrived, 'minute', $zone, $week_start) AS arrived,
    CASE WHEN arrived IS NOT NULL THEN local_period(counted_at, 'minute', $zone, $week_start) END AS counted_at,
    tokens
  FROM read
)
GROUP BY {{ keys }}arrived, counted_at
-- step: placed
WITH minutes AS (
  SELECT {{ keys }} minute, sum(requests) AS arrived, sum(with_tokens) AS with_tokens, sum(tokens) AS tokens
  FROM (
    SELECT {{ keys }} arrived AS minute, requests, 0 AS with_tokens, CAST(NULL AS DECIMAL(38, 0)) AS tokens FROM placed
    UNION ALL
    SELECT {{ keys }} counted_at, 0, with_tokens, tokens FROM placed
  )
  GROUP BY {{ keys }}minute
),
listed AS (
  SELECT
    {{ keys }}
    position, measure, minute, arrived,
    CASE WHEN minute IS NULL THEN 0 WHEN position = 1 THEN with_tokens ELSE arrived END AS counted,
-- more than 64 bits hold is a lot, and no less over a limit
    CASE WHEN minute IS NULL OR position = 2 AND arrived = 0 THEN NULL WHEN position = 2 THEN arrived
      WHEN tokens > 9223372036854775807 THEN 9223372036854775807 ELSE CAST(tokens AS BIGINT) END AS amount,
    CAST(CASE position WHEN 1 THEN $limit_tokens ELSE $limit_requests END AS BIGINT) AS limit_per_minute
  FROM minutes
  CROSS JOIN (VALUES (1, 'tokens', {{ "TRUE" if limit_tokens or not limit_requests else "FALSE" }}),
    (2, 'requests', {{ "TRUE" if limit_requests or not limit_tokens else "FALSE" }})) AS measures (position, measure, is_asked)
  WHERE is_asked
),
grouped AS (
  SELECT
    {{ keys }}
    position, measure, limit_per_minute,
    sum(arrived) AS requests, sum(counted) AS counted,
    count(amount) AS active_minutes, percentiles_nearest(amount, $percentiles) AS usual,
    max(amount) AS peak,
    first_value(minute ORDER BY amount DESC NULLS LAST, minute) AS fullest,
    count(*) FILTER (WHERE amount > limit_per_minute) AS minutes_over,
    min(minute) FILTER (WHERE amount > limit_per_minute) AS first_over,
    max(minute) FILTER (WHERE amount > limit_per_minute) AS last_over,
    coalesce(sum(arrived) FILTER (WHERE amount > limit_per_minute), 0) AS arrived_over
  FROM listed
  GROUP BY {{ keys }}position, measure, limit_per_minute
)
SELECT
  {{ labelled }}
  measure, active_minutes,
{% for percentile in percentiles %}
  usual[{{ loop.index }}] AS {{ percentile.name }},
{% endfor %}
  peak, CASE WHEN peak IS NOT NULL THEN fullest END AS peak_at,
  limit_per_minute, CAST(peak AS DOUBLE) / limit_per_minute AS peak_of_limit,
  CASE WHEN limit_per_minute IS NOT NULL THEN minutes_over END AS minutes_over, first_over, last_over,
  CASE WHEN limit_per_minute IS NOT NULL THEN arrived_over END AS arrived_over,
  counted, requests - counted AS left_out,
  CASE
    WHEN peak IS NULL THEN NULL
    WHEN limit_per_minute IS NULL THEN 'no limit'
    WHEN peak > limit_per_minute THEN 'over'
    WHEN CAST(peak AS DECIMAL(38, 0)) * 5 >= limit_per_minute * 4 THEN 'near'
    ELSE 'ok'
  END AS status
FROM grouped
ORDER BY {{ order }}position
{{ limit }}
