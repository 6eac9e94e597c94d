-- title: Capacity
-- question: How many requests and tokens come in a minute, how many requests run at once, and when was that most?
-- example: capacity logs/
-- example: capacity --by tenant --tokens-at end --month 2025-06 logs/
-- sampled: refused
-- param: by dimensions | what to group by
-- param: tokens_at choice start spread end | count the tokens of a request when it arrives, evenly until its answer ends (in pieces of a second, sixty of longer ones), or when it ends
-- param: percentiles percentiles 50,95,99 | which percentiles to show
-- column: measure | requests by their arrival, tokens (input and output), or requests at once
-- column: span | a minute of the clock; any stretch of so many seconds, the last included; or an instant
-- column: p* | percentile of all minutes from the first request to the last, empty ones too; of requests at once by how long each number lasted
-- column: peak | the most that there was
-- column: peak_at | when: the start of the minute, the end of the stretch, or the instant since when
-- column: counted requests | requests that are in these numbers
-- column: left_out requests | requests without a time, for tokens also those whose tokens are not known, for requests at once those without an end
WITH read AS (
  SELECT
    {{ keyed }}
    timestamp AS arrived,
    {{ ended }} AS ended,
    TRY_CAST(CAST(coalesce(input_tokens, 0) AS DECIMAL(38, 0)) + coalesce(output_tokens, 0) AS BIGINT) AS tokens,
    input_tokens IS NULL AND output_tokens IS NULL AS unknown
  FROM {{ logs }}
),
{% if tokens_at == "spread" %}
{% set length = "(arrow_cast(ended, 'Int64') - arrow_cast(arrived, 'Int64'))" %}
pieces AS (
-- one a second, of a longer request sixty
  SELECT *, CASE WHEN ended > arrived THEN least(({{ length }} - 1) / 1000000000 + 1, 60) ELSE 1 END AS pieces FROM read
),
split AS (
  SELECT *, unnest(range(0, pieces)) AS piece FROM pieces
),
placed AS (
  SELECT arrived, ended, piece, {{ keys }}unknown,
    CASE WHEN ended > arrived THEN arrived + arrow_cast({{ length }} / (2 * pieces) * (2 * piece + 1), 'Duration(Nanosecond)') ELSE arrived END AS counted_at,
    CAST(CAST(tokens AS DECIMAL(38, 0)) * (piece + 1) / pieces AS BIGINT) - CAST(CAST(tokens AS DECIMAL(38, 0)) * piece / pieces AS BIGINT) AS tokens
  FROM split
),
{% else %}
placed AS (
  SELECT *, 0 AS piece, {{ "coalesce(ended, arrived)" if tokens_at == "end" else "arrived" }} AS counted_at FROM read
),
{% endif %}
listed AS (
  SELECT {{ keys }}
    count(*) FILTER (WHERE piece = 0) AS requests,
    count(arrived) FILTER (WHERE piece = 0) AS dated,
    count(*) FILTER (WHERE piece = 0 AND arrived IS NOT NULL AND NOT unknown) AS with_tokens,
    count(*) FILTER (WHERE piece = 0 AND ended > arrived) AS with_end,
    array_agg(arrived) FILTER (WHERE piece = 0 AND arrived IS NOT NULL) AS arrivals,
    array_agg(CAST(1 AS BIGINT)) FILTER (WHERE piece = 0 AND arrived IS NOT NULL) AS ones,
    array_agg(ended) FILTER (WHERE piece = 0 AND arrived IS NOT NULL) AS ends,
    array_agg(counted_at) FILTER (WHERE arrived IS NOT NULL) AS times,
    array_agg(tokens) FILTER (WHERE arrived IS NOT NULL) AS amounts
  FROM placed
  {{ group_by }}
),
found AS (
  SELECT {{ keys }} requests, dated, with_tokens, with_end,
    fullest_minute(arrivals, ones) AS peak_1, fullest(arrivals, ones, 60000) AS peak_2, fullest(arrivals, ones, 10000) AS peak_3,
    fullest_minute(times, amounts) AS peak_4, fullest(times, amounts, 60000) AS peak_5, fullest(times, amounts, 10000) AS peak_6,
    concurrency(arrivals, ends) AS peak_7,
    minute_percentiles(arrivals, ones, $percentiles) AS usual_1, minute_percentiles(times, amounts, $percentiles) AS usual_4,
    concurrency_percentiles(arrivals, ends, $percentiles) AS usual_7
  FROM listed
),
told AS (
  SELECT *,
    CASE position {% for number in range(1, 8) %}WHEN {{ number }} THEN peak_{{ number }} {% endfor %}END AS peak,
    CASE position WHEN 1 THEN usual_1 WHEN 4 THEN usual_4 WHEN 7 THEN usual_7 END AS usual,
    CASE measure WHEN 'requests' THEN dated WHEN 'tokens' THEN with_tokens ELSE with_end END AS counted
  FROM found
  CROSS JOIN (VALUES (1, 'requests', 'calendar minute'), (2, 'requests', 'any 60 s'), (3, 'requests', 'any 10 s'),
    (4, 'tokens', 'calendar minute'), (5, 'tokens', 'any 60 s'), (6, 'tokens', 'any 10 s'), (7, 'at once', 'instant')) AS spans (position, measure, span)
)
SELECT
  {{ labelled }}
  measure, span,
{% for percentile in percentiles %}
  CASE WHEN counted > 0 THEN usual[{{ loop.index }}] END AS {{ percentile.name }},
{% endfor %}
  CASE WHEN counted > 0 THEN peak[1] END AS peak,
  CASE WHEN counted > 0 THEN arrow_cast(peak[2], 'Timestamp(Nanosecond, Some("UTC"))') END AS peak_at,
  counted, requests - counted AS left_out
FROM told
ORDER BY {{ order }}position
{{ limit }}
