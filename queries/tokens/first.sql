-- title: First token
-- question: What is different about requests whose first token comes late, against fast ones of the same model and input length?
-- example: tokens first logs/
-- example: tokens first --by model,input-bucket --slow 5 logs/
-- sampled: refused
-- param: by dimensions | what to group by; whatever it is, requests are compared with others of their model and input bucket only
-- param: slow number 10 0.1..50 | slow is the slowest part, in percent by TTFT, of each model and input bucket
-- param: fast number 50 0.1..50 | fast is the fastest part, in percent
-- param: min_count integer 10 1..1000000000 | a factor that fewer requests of either side know is too little to say
-- column: factor | what may differ. Numbers: queue wait, prefill, batch size, input tokens, share of the prompt from the prefix cache, requests of the model that arrived in the same second; words: priority, gpu, host, version, business line, whether the cache was hit
-- column: value | of numbers whether the slow have more or less; of words the one that is most over-represented among the slow
-- column: verdict | large (effect 0.474 or more either way), medium (0.33), small (0.147), none; chance: within 3 standard errors of none; too few
-- column: effect | numbers: Cliff's delta, how much likelier the slow one of a slow and a fast request has more than less, -1 to 1; words: share of the value among the slow - that among the fast. Both within model and bucket, then averaged by the slow requests of each
-- column: slow | median of the slow, of words the share of the value
-- column: fast | the same of the fast
-- column: difference | slow - fast
-- column: unit | of slow, fast and difference
-- column: slow_known requests | slow requests that say it, in models and buckets where fast ones do too
-- column: fast_known requests | fast requests that say it, there
-- column: slow_requests requests | all slow requests of the row
-- column: fast_requests requests | all fast requests of the row
-- column: slow_ttft_ms ms | median TTFT of the slow
-- column: fast_ttft_ms ms | median TTFT of the fast
{% set numbers = [
  {"name": "queue wait", "value": "queue_wait_ms", "unit": "ms"}, {"name": "prefill", "value": "prefill_time_ms", "unit": "ms"},
  {"name": "batch size", "value": "batch_size", "unit": "requests"}, {"name": "input tokens", "value": "input_tokens", "unit": "tokens"},
  {"name": "cached share", "value": "CASE WHEN cached_tokens <= input_tokens THEN CAST(cached_tokens AS DOUBLE) / nullif(input_tokens, 0) END", "unit": "ratio"},
  {"name": "arrivals in the second", "value": "at_once", "unit": "requests"}] %}
{% set words = [{"name": "priority", "value": "priority"}, {"name": "gpu", "value": "gpu_id"}, {"name": "host", "value": "host"}, {"name": "version", "value": "model_version"},
  {"name": "business line", "value": "business_line"}, {"name": "cache hit", "value": "CASE WHEN cache_hit THEN 'hit' WHEN NOT cache_hit THEN 'miss' END"}] %}
SELECT model_name, bucket(input_tokens, $input_edges) AS cell, percentiles(ttft_ms, [{{ fast / 100 }}, {{ 1 - slow / 100 }}]) AS limits
FROM {{ logs }}
WHERE failed IS NOT TRUE AND ttft_ms IS NOT NULL
GROUP BY model_name, cell
-- step: cells
SELECT model_name, date_trunc('second', timestamp) AS second, count(*) AS at_once
FROM {{ logs }}
WHERE timestamp IS NOT NULL
GROUP BY model_name, second
-- step: seconds
WITH read AS (
  SELECT {{ keyed }}*, bucket(input_tokens, $input_edges) AS bucket, date_trunc('second', timestamp) AS second
  FROM {{ logs }}
  WHERE failed IS NOT TRUE AND ttft_ms IS NOT NULL
)
SELECT {{ keys }}cells.model_name, cell, CASE WHEN ttft_ms > limits[1] THEN 1 ELSE 0 END AS is_slow, ttft_ms,
{% for number in numbers %}
  CAST({{ number.value }} AS DOUBLE) AS number_{{ loop.index }},
{% endfor %}
{% for word in words %}
  CAST({{ word.value }} AS VARCHAR) AS word_{{ loop.index }}{{ "" if loop.last else "," }}
{% endfor %}
FROM read
JOIN cells ON (read.model_name IS NOT DISTINCT FROM cells.model_name) AND (read.bucket IS NOT DISTINCT FROM cells.cell)
LEFT JOIN seconds ON (read.model_name IS NOT DISTINCT FROM seconds.model_name) AND read.second = seconds.second
-- where both limits are one value, the slow are above it
WHERE ttft_ms <= limits[1] OR ttft_ms >= limits[2]
-- step: sides
WITH long AS (
  SELECT {{ keys }}model_name, cell, is_slow, unnest(make_array({% for number in numbers %}{{ loop.index }}{{ "" if loop.last else ", " }}{% endfor %})) AS position,
    unnest(make_array({% for number in numbers %}number_{{ loop.index }}{{ "" if loop.last else ", " }}{% endfor %})) AS x
  FROM sides
),
known AS (
  SELECT *, count(*) FILTER (WHERE is_slow = 1) OVER cell AS slows, count(*) FILTER (WHERE is_slow = 0) OVER cell AS fasts
  FROM long
  WHERE x IS NOT NULL
  WINDOW cell AS (PARTITION BY {{ keys }}model_name, cell, position)
),
ranked AS (
-- twice the mean rank, so that it is whole
  SELECT *, 2 * rank() OVER (PARTITION BY {{ keys }}model_name, cell, position ORDER BY x) - 1 + count(*) OVER (PARTITION BY {{ keys }}model_name, cell, position, x) AS place
  FROM known
  WHERE slows > 0 AND fasts > 0
),
compared AS (
  SELECT {{ keys }}position, model_name, cell, max(slows) AS slows, max(fasts) AS fasts,
    (sum(CASE WHEN is_slow = 1 THEN CAST(place AS DECIMAL(38, 0)) ELSE 0 END) - max(slows) * (max(slows) + 1)) AS above
  FROM ranked
  GROUP BY {{ keys }}position, model_name, cell
),
effects AS (
  SELECT {{ keys }}position, CAST(sum(slows) AS BIGINT) AS slow_known, CAST(sum(fasts) AS BIGINT) AS fast_known,
    exact_sum(CAST(above AS DOUBLE) / fasts - slows) / sum(slows) AS effect,
    sqrt(exact_sum(CAST(slows AS DOUBLE) * slows * (slows + fasts + 1) / (3.0 * slows * fasts))) / sum(slows) AS error
  FROM compared
  GROUP BY {{ keys }}position
),
middles AS (
  SELECT {{ keys }}position, median(CASE WHEN is_slow = 1 THEN x END) AS slow, median(CASE WHEN is_slow = 0 THEN x END) AS fast
  FROM ranked
  GROUP BY {{ keys }}position
)
SELECT {% for dimension in dimensions %}effects.{{ dimension.key }}, {% endfor %}effects.position, slow_known, fast_known, effect, error, slow, fast
FROM effects
JOIN middles ON effects.position = middles.position AND {{ same_keys("effects", "middles") }}
-- step: numbers
WITH long AS (
  SELECT {{ keys }}model_name, cell, is_slow, unnest(make_array({% for word in words %}{{ loop.index }}{{ "" if loop.last else ", " }}{% endfor %})) AS position,
    unnest(make_array({% for word in words %}word_{{ loop.index }}{{ "" if loop.last else ", " }}{% endfor %})) AS word
  FROM sides
),
counted AS (
  SELECT {{ keys }}model_name, cell, position, word, sum(is_slow) AS slow, count(*) - sum(is_slow) AS fast
  FROM long
  WHERE word IS NOT NULL
  GROUP BY {{ keys }}model_name, cell, position, word
),
whole AS (
  SELECT *, sum(slow) OVER cell AS slows, sum(fast) OVER cell AS fasts
  FROM counted
  WINDOW cell AS (PARTITION BY {{ keys }}model_name, cell, position)
),
weighed AS (
  SELECT *, sum(slows) OVER (PARTITION BY {{ keys }}position, word) AS seen, CAST(slow + fast AS DOUBLE) / (slows + fasts) AS part
  FROM whole
  WHERE slows > 0 AND fasts > 0
),
sizes AS (
  SELECT {{ keys }}position, CAST(sum(slows) AS BIGINT) AS slow_known, CAST(sum(fasts) AS BIGINT) AS fast_known
  FROM (SELECT DISTINCT {{ keys }}position, model_name, cell, slows, fasts FROM weighed)
  GROUP BY {{ keys }}position
),
shares AS (
-- a cell that lacks the word has it on neither side, and counts as such
  SELECT {{ keys }}position, word, exact_sum(CAST(slow AS DOUBLE)) AS slow, exact_sum(slows * (CAST(fast AS DOUBLE) / fasts)) AS fast,
    exact_sum(CAST(slows AS DOUBLE) * slows * part * (1 - part) * (1.0 / slows + 1.0 / fasts)) AS variance
  FROM weighed
  GROUP BY {{ keys }}position, word
),
placed AS (
  SELECT shares.*, slow_known, fast_known, (slow - fast) / slow_known AS effect,
    row_number() OVER (PARTITION BY {% for dimension in dimensions %}shares.{{ dimension.key }}, {% endfor %}shares.position ORDER BY (slow - fast) / slow_known DESC, word) AS place
  FROM shares
  JOIN sizes ON shares.position = sizes.position AND {{ same_keys("shares", "sizes") }}
)
SELECT {{ keys }}position, word, slow_known, fast_known, effect, sqrt(variance) / slow_known AS error, slow / slow_known AS slow, fast / slow_known AS fast
FROM placed
WHERE place = 1
-- step: words
WITH sized AS (
  SELECT {{ keys }}sum(is_slow) AS slow_requests, count(*) - sum(is_slow) AS fast_requests, median(CASE WHEN is_slow = 1 THEN ttft_ms END) AS slow_ttft_ms,
    median(CASE WHEN is_slow = 0 THEN ttft_ms END) AS fast_ttft_ms
  FROM sides
  {{ group_by }}
),
found AS (
  SELECT {{ keys }}factor, unit, number AS place, CAST(NULL AS VARCHAR) AS value, slow_known, fast_known, effect, error, slow, fast
  FROM numbers
  JOIN (VALUES{% for number in numbers %} ({{ loop.index }}, '{{ number.name }}', '{{ number.unit }}'){{ "" if loop.last else "," }}{% endfor %}) AS names (number, factor, unit) ON position = number
  UNION ALL
  SELECT {{ keys }}factor, 'ratio', number + 100, word, slow_known, fast_known, effect, error, slow, fast
  FROM words
  JOIN (VALUES{% for word in words %} ({{ loop.index }}, '{{ word.name }}'){{ "" if loop.last else "," }}{% endfor %}) AS names (number, factor) ON position = number
)
SELECT {% for dimension in dimensions %}{{ dimension.label | replace(dimension.key, "found." ~ dimension.key) }} AS {{ dimension.name }}, {% endfor %}
  factor, coalesce(value, CASE WHEN effect > 0 THEN 'more' WHEN effect < 0 THEN 'less' ELSE 'same' END) AS value,
  CASE WHEN slow_known < $min_count OR fast_known < $min_count THEN 'too few' WHEN abs(effect) <= 3 * error THEN 'chance'
    WHEN abs(effect) >= 0.474 THEN 'large' WHEN abs(effect) >= 0.33 THEN 'medium' WHEN abs(effect) >= 0.147 THEN 'small' ELSE 'none' END AS verdict,
  effect, slow, fast, slow - fast AS difference, unit, slow_known, fast_known, CAST(slow_requests AS BIGINT) AS slow_requests, CAST(fast_requests AS BIGINT) AS fast_requests, slow_ttft_ms, fast_ttft_ms
FROM found
JOIN sized ON {{ same_keys("found", "sized") }}
ORDER BY {% if dimensions %}{{ order | replace("key_", "found.key_") }}{% else %}{{ order }}{% endif %}abs(effect) DESC, place
{{ limit }}
