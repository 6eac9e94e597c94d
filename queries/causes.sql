-- title: Causes
-- question: Which pattern do slow requests have, when and where do they come, and what is the likely cause?
-- example: causes logs/
-- example: causes --by business-line --times 5 --since 7d logs/
-- sampled: refused
-- param: by dimensions model | what to group by, besides the pattern
-- param: times number 3 2..1000 | slow is what takes longer than so many medians of its model and input bucket, for TTFT, TPOT or the total
-- column: severity | warning where hours, GPUs or errors say that it is clearly more than usual: timing is fixed hours, one span or several spans, gpus are named, or rule 1 holds; else info
-- column: pattern | first token: TTFT is slow, TPOT below half of slow or unknown; decoding: the reverse; overload: both slow; long answer: output tokens and total above the same multiple; other: the rest
-- column: requests requests | all requests of the group
-- column: measured requests | of them those that did not fail and have a TTFT, TPOT or total
-- column: slow requests | measured requests with this pattern
-- column: share ratio | slow / measured
-- column: stage | queue, prefill, decode or other: where most of the excess is, a duration - its median of model and input bucket; of first token only what comes before it; null where stages are not logged
-- column: stage_share ratio | its part of the excess of all stages
-- column: timing | fixed hours: a local hour of day with more, on 3 days and on half of its days or more, no day having more than half of them; one span: hours with more, half of all from the first to the last; several spans; busy hours: 3/4 of the slow are in the hours with most requests, that have half of all; else spread. Null below 10 slow or 3 hours
-- column: hours | local hours of day of that, else none: with at least 3 times the slow requests that are expected at most from other hours of day when the whole log has as many requests an hour (0.8 of them or more; where there are none, from all other hours), beyond chance: the lower bound is above what the upper bound of the others expects, at 95 % for all looks taken
-- column: peak_hour | local hour of day with most slow requests, the first of them
-- column: first_seen | the first slow request, for fixed hours and spans of those hours
-- column: last_seen | the last
-- column: gpus | those with at least twice the slow requests that are expected at most from other GPUs of the model, beyond chance as above, else none; null where there is nothing to compare
-- column: at_once requests | median of the slow: requests of their model that ran in the minute of their arrival
-- column: at_once_others requests | the same of the measured requests of the group that are not slow
-- column: batch_size requests | median of the slow
-- column: batch_size_others requests | median of the measured that are not slow
-- column: input_tokens tokens | median of the slow
-- column: input_tokens_usual tokens | median, over the slow, of the median of their model and input bucket
-- column: output_tokens tokens | median of the slow
-- column: output_tokens_usual tokens | median, over the slow, of the median of their model and input bucket
-- column: errors_beside ratio | 429, 503 and time-outs among requests of their model that arrived in the same minutes as the slow, each minute as often as it has slow ones
-- column: errors_others ratio | the same for the measured that are not slow
-- column: cause | the first rule that holds, of 10 slow or more, else null
-- rule 1, upstream limit or connection pool: errors_beside is 1 % or more, and 3 times errors_others or more, and 20 of the slow or more have such an error beside
-- rule 2, scheduled job: fixed hours
-- rule 3, shared GPU: gpus are named, and timing is spread or busy hours
-- rule 4, too many at once: the stage is queue, and at_once or batch_size is 1.5 times that of others or more
-- rule 5, long prompts: the stage is prefill, and input tokens are 1.5 times the usual or more
-- rule 6, long outputs: the stage is decode, and output tokens are `times` times the usual or more
-- rule 7, large batches: the stage is decode, and the batch size is 1.5 times that of others or more
{% set patterns = ["first token", "decoding", "overload", "long answer", "other"] %}
{% set stages = ["queue", "prefill", "decode", "other"] %}
{% set minute = "local_period(%s, 'minute', $zone, $week_start)" %}
{# bounds of Poisson counts by Byar, Bonferroni for all rows; the normal quantile by Abramowitz and Stegun, 26.2.23 #}
{% set t = "sqrt(-2 * ln(0.025 / count(*) OVER ()))" %}
{% set z = "(t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t))" %}
{% set upper = "((%s + 1) * power(1 - 1 / (9.0 * (%s + 1)) + " ~ z ~ " / (3 * sqrt(%s + 1)), 3))" %}
{% set beyond = "slow * power(greatest(1 - 1 / (9.0 * slow) - " ~ z ~ " / (3 * sqrt(slow)), 0), 3) > expected" %}
WITH read AS (
  SELECT model_name, timestamp, {{ ended }} AS ended, failed, input_tokens, output_tokens,
    ttft_ms, tpot_ms, total_latency_ms, queue_wait_ms, prefill_time_ms, decode_time_ms,
    coalesce(http_status, TRY_CAST(error_code AS BIGINT)) AS http,
    lower(concat_ws(' ', error_code, status, finish_reason,
      array_element(CAST($error_names AS VARCHAR[]), CAST(array_position(CAST($error_codes AS VARCHAR[]), error_code) AS BIGINT)))) AS words,
    unnest(make_array('cell', 'start', 'end')) AS part
  FROM {{ logs }}
),
parted AS (
-- a request is one of its model and bucket, it starts in a minute, and it ends in one
  SELECT model_name, part,
    CASE part WHEN 'start' THEN {{ minute | format("timestamp") }} WHEN 'end' THEN {{ minute | format("ended") }} END AS minute,
    CASE part WHEN 'cell' THEN bucket(input_tokens, $input_edges) END AS cell,
    part = 'cell' AND failed IS NOT TRUE AS is_usual, part = 'start' AND ended >= timestamp AS has_end, failed,
    CASE WHEN NOT coalesce(failed, false) THEN NULL
      WHEN http = 429 OR words LIKE '%rate%limit%' OR words LIKE '%throttl%' THEN '429'
      WHEN http = 503 OR words LIKE '%unavailable%' THEN '503'
      WHEN http IN (408, 504) OR words LIKE '%time%out%' OR words LIKE '%deadline%' THEN 'time-out' END AS error,
    input_tokens, output_tokens, ttft_ms, tpot_ms, total_latency_ms, queue_wait_ms, prefill_time_ms, decode_time_ms
  FROM read
  WHERE part <> 'end' OR ended >= timestamp
)
SELECT model_name, part, minute, cell,
  count(*) AS n, count(*) FILTER (WHERE has_end) AS with_end, count(failed) AS judged,
  count(*) FILTER (WHERE error = '429') AS limited, count(*) FILTER (WHERE error = '503') AS unavailable, count(*) FILTER (WHERE error = 'time-out') AS timed_out,
{% for column in ["ttft_ms", "tpot_ms", "total_latency_ms", "input_tokens", "output_tokens", "queue_wait_ms", "prefill_time_ms", "decode_time_ms"] %}
  median(CASE WHEN is_usual THEN {{ column }} END) AS {{ column }},
{% endfor %}
  median(CASE WHEN is_usual THEN ttft_ms - queue_wait_ms - prefill_time_ms END) AS before_ms,
  median(CASE WHEN is_usual THEN total_latency_ms - queue_wait_ms - prefill_time_ms - decode_time_ms END) AS other_ms
FROM parted
GROUP BY model_name, part, minute, cell
-- step: parts
SELECT model_name, minute, sum(CASE part WHEN 'start' THEN n END) AS arrived, sum(judged) AS judged,
  sum(limited) AS limited, sum(unavailable) AS unavailable, sum(timed_out) AS timed_out,
  sum(CASE part WHEN 'start' THEN n END)
    + coalesce(sum(sum(with_end) - sum(CASE part WHEN 'end' THEN n ELSE 0 END))
      OVER (PARTITION BY model_name ORDER BY minute ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS at_once
FROM (SELECT model_name, part, minute, n, with_end, CASE part WHEN 'start' THEN judged END AS judged,
    CASE part WHEN 'start' THEN limited END AS limited, CASE part WHEN 'start' THEN unavailable END AS unavailable,
    CASE part WHEN 'start' THEN timed_out END AS timed_out
  FROM parts WHERE part <> 'cell' AND minute IS NOT NULL)
GROUP BY model_name, minute
-- step: minutes
WITH read AS (
  SELECT
    {{ keyed }}
    model_name, timestamp, gpu_id, batch_size, bucket(input_tokens, $input_edges) AS cell,
    {{ minute | format("timestamp") }} AS minute, local_period(timestamp, 'hour', $zone, $week_start) AS hour,
    input_tokens, output_tokens, ttft_ms, tpot_ms, total_latency_ms, queue_wait_ms, prefill_time_ms, decode_time_ms,
    failed IS NOT TRUE AND (ttft_ms IS NOT NULL OR tpot_ms IS NOT NULL OR total_latency_ms IS NOT NULL) AS measured
  FROM {{ logs }}
),
compared AS (
  SELECT read.*, cells.input_tokens AS usual_input, cells.output_tokens AS usual_output,
    cells.queue_wait_ms AS usual_queue, cells.prefill_time_ms AS usual_prefill, cells.decode_time_ms AS usual_decode, before_ms, other_ms,
    CASE WHEN measured THEN read.ttft_ms / nullif(cells.ttft_ms, 0) END AS ttft_times,
    CASE WHEN measured THEN read.tpot_ms / nullif(cells.tpot_ms, 0) END AS tpot_times,
    CASE WHEN measured THEN read.total_latency_ms / nullif(cells.total_latency_ms, 0) END AS total_times,
    read.output_tokens / nullif(cells.output_tokens, 0) AS output_times,
    at_once, minutes.judged, minutes.limited, minutes.unavailable, minutes.timed_out
  FROM read
  LEFT JOIN (SELECT * FROM parts WHERE part = 'cell') AS cells
    ON (read.model_name IS NOT DISTINCT FROM cells.model_name) AND (read.cell IS NOT DISTINCT FROM cells.cell)
  LEFT JOIN minutes ON (read.model_name IS NOT DISTINCT FROM minutes.model_name) AND read.minute = minutes.minute
),
judged AS (
  SELECT *,
    CASE
      WHEN ttft_times > $times AND tpot_times > $times THEN 'overload'
      WHEN ttft_times > $times AND coalesce(tpot_times < $times / 2, true) THEN 'first token'
      WHEN tpot_times > $times AND coalesce(ttft_times < $times / 2, true) THEN 'decoding'
      WHEN output_times > $times AND total_times > $times THEN 'long answer'
      WHEN ttft_times > $times OR tpot_times > $times OR total_times > $times THEN 'other'
    END AS pattern
  FROM compared
),
exceeded AS (
  SELECT *,
    CASE WHEN queue_wait_ms > usual_queue THEN queue_wait_ms - usual_queue END AS queue_excess,
    CASE WHEN prefill_time_ms > usual_prefill THEN prefill_time_ms - usual_prefill END AS prefill_excess,
    CASE WHEN pattern <> 'first token' AND decode_time_ms > usual_decode THEN decode_time_ms - usual_decode END AS decode_excess,
    greatest(CASE pattern WHEN 'first token' THEN ttft_ms - queue_wait_ms - prefill_time_ms - before_ms
      ELSE total_latency_ms - queue_wait_ms - prefill_time_ms - decode_time_ms - other_ms END, 0) AS other_excess
  FROM judged
),
leveled AS (
-- each request counts for its group, its hour and its GPU
  SELECT *, unnest(make_array('group', 'hour', 'gpu')) AS level FROM exceeded
)
SELECT
  {{ keys }}
  level, pattern,
  CASE level WHEN 'hour' THEN hour END AS hour, CASE level WHEN 'gpu' THEN model_name END AS model, CASE level WHEN 'gpu' THEN gpu_id END AS gpu,
  count(*) AS n, count(*) FILTER (WHERE measured) AS measured, min(timestamp) AS first_seen, max(timestamp) AS last_seen,
{% for stage in stages %}
  exact_sum(CASE WHEN level = 'group' AND pattern IS NOT NULL THEN {{ stage }}_excess END) AS {{ stage }},
{% endfor %}
{% for column in ["at_once", "batch_size", "input_tokens", "usual_input", "output_tokens", "usual_output"] %}
  median(CASE WHEN level = 'group' AND measured THEN {{ column }} END) AS {{ column }},
{% endfor %}
  count(*) FILTER (WHERE level = 'group' AND measured AND limited + unavailable + timed_out > 0) AS with_errors,
{% for column in ["judged", "limited", "unavailable", "timed_out"] %}
  sum(CASE WHEN level = 'group' AND measured THEN {{ column }} END) AS {{ column }}{{ "" if loop.last else "," }}
{% endfor %}
FROM leveled
GROUP BY {{ keys }}level, pattern, CASE level WHEN 'hour' THEN hour END, CASE level WHEN 'gpu' THEN model_name END, CASE level WHEN 'gpu' THEN gpu_id END
-- step: counts
WITH patterns AS (
  SELECT * FROM (VALUES {% for pattern in patterns %}('{{ pattern }}'){{ "" if loop.last else ", " }}{% endfor %}) AS listed (pattern)
),
grid AS (
  SELECT {{ keys }} patterns.pattern, hour, arrow_cast(local_part(hour, 'hour', $zone, $week_start), 'Int64') AS hour_of_day,
    sum(measured) AS n, sum(CASE WHEN counts.pattern = patterns.pattern THEN measured ELSE 0 END) AS slow,
    min(CASE WHEN counts.pattern = patterns.pattern THEN first_seen END) AS first_seen,
    max(CASE WHEN counts.pattern = patterns.pattern THEN last_seen END) AS last_seen
  FROM counts CROSS JOIN patterns
  WHERE level = 'hour' AND hour IS NOT NULL AND measured > 0
  GROUP BY {{ keys }}patterns.pattern, hour
),
hourly AS (
-- how busy an hour is, is of all groups
  SELECT *, sum(n) OVER (PARTITION BY pattern, hour) AS load FROM grid
),
peered AS (
-- ln 1.25: hours with 0.8 of the load or more
  SELECT *,
{% for measure in ["n", "slow"] %}
    sum({{ measure }}) OVER (PARTITION BY {{ keys }}pattern ORDER BY ln(load) DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 0.22314355 FOLLOWING)
      - sum({{ measure }}) OVER (PARTITION BY {{ keys }}pattern, hour_of_day ORDER BY ln(load) DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 0.22314355 FOLLOWING) AS peer_{{ measure }},
    sum({{ measure }}) OVER (PARTITION BY {{ keys }}pattern) - {{ measure }} AS rest_{{ measure }},
{% endfor %}
    sum(n) OVER (PARTITION BY {{ keys }}pattern) AS everything,
    sum(n) OVER (PARTITION BY {{ keys }}pattern ORDER BY load DESC, hour ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) - n AS busier,
    sum(slow) OVER (PARTITION BY {{ keys }}pattern, hour_of_day) AS slow_of_day
  FROM hourly
),
foreseen AS (
  SELECT *, n * {{ upper | format("known_slow", "known_slow", "known_slow") }} / known_n AS expected
  FROM (SELECT *, {{ t }} AS t, nullif(CASE WHEN peer_n > 0 THEN peer_n ELSE rest_n END, 0) AS known_n,
      CASE WHEN peer_n > 0 THEN peer_slow ELSE rest_slow END AS known_slow FROM peered)
),
daily AS (
  SELECT {{ keys }} pattern, hour_of_day, sum(slow) AS slow, exact_sum(expected) AS expected, count(*) AS days, count(*) FILTER (WHERE slow > 0) AS slow_days, max(slow) AS most
  FROM foreseen
  GROUP BY {{ keys }}pattern, hour_of_day
),
fixed AS (
  SELECT {{ keys }} pattern, hour_of_day
  FROM (SELECT *, {{ t }} AS t FROM daily)
  WHERE slow >= 10 AND slow_days >= 3 AND 2 * slow_days >= days AND 2 * most <= slow AND slow >= 3 * expected AND {{ beyond }}
),
marked AS (
  SELECT foreseen.*, fixed.hour_of_day IS NOT NULL AS is_fixed, slow >= 5 AND slow >= 3 * expected AND {{ beyond }} AS is_more
  FROM foreseen
  LEFT JOIN fixed ON foreseen.hour_of_day = fixed.hour_of_day AND foreseen.pattern = fixed.pattern AND {{ same_keys("foreseen", "fixed") }}
),
stretched AS (
  SELECT *,
    min(CASE WHEN is_more THEN hour END) OVER (PARTITION BY {{ keys }}pattern) AS from_hour,
    max(CASE WHEN is_more THEN hour END) OVER (PARTITION BY {{ keys }}pattern) AS to_hour,
    bool_or(is_fixed) OVER (PARTITION BY {{ keys }}pattern) AS has_fixed
  FROM marked
),
timed AS (
  SELECT {{ keys }} pattern,
    CASE WHEN sum(slow) < 10 OR count(*) < 3 THEN NULL
      WHEN bool_or(is_fixed) THEN 'fixed hours'
      WHEN bool_or(is_more) THEN
        CASE WHEN 2 * count(*) FILTER (WHERE is_more) >= count(*) FILTER (WHERE hour BETWEEN from_hour AND to_hour) THEN 'one span' ELSE 'several spans' END
      WHEN 4 * sum(CASE WHEN 2 * busier < everything THEN slow ELSE 0 END) >= 3 * sum(slow) THEN 'busy hours'
      ELSE 'spread' END AS timing,
    CASE WHEN sum(slow) >= 10 AND count(*) >= 3 THEN
      coalesce(array_to_string(array_sort(array_agg(DISTINCT hour_of_day) FILTER (WHERE CASE WHEN has_fixed THEN is_fixed ELSE is_more END)), ', '), 'none') END AS hours,
    first_value(hour_of_day ORDER BY slow_of_day DESC, hour_of_day) AS peak_hour,
    min(CASE WHEN CASE WHEN has_fixed THEN is_fixed ELSE is_more END THEN first_seen END) AS first_seen,
    max(CASE WHEN CASE WHEN has_fixed THEN is_fixed ELSE is_more END THEN last_seen END) AS last_seen
  FROM stretched
  GROUP BY {{ keys }}pattern
),
machines AS (
  SELECT {{ keys }} patterns.pattern, model, gpu, sum(measured) AS n, sum(CASE WHEN counts.pattern = patterns.pattern THEN measured ELSE 0 END) AS slow
  FROM counts CROSS JOIN patterns
  WHERE level = 'gpu' AND gpu IS NOT NULL AND measured > 0
  GROUP BY {{ keys }}patterns.pattern, model, gpu
),
others AS (
  SELECT *, {{ t }} AS t, sum(n) OVER (PARTITION BY {{ keys }}pattern, model) - n AS rest_n, sum(slow) OVER (PARTITION BY {{ keys }}pattern, model) - slow AS rest_slow
  FROM machines
),
machined AS (
  SELECT {{ keys }} pattern, gpu, sum(slow) AS slow, exact_sum(n * {{ upper | format("rest_slow", "rest_slow", "rest_slow") }} / rest_n) AS expected
  FROM others
  WHERE rest_n > 0
  GROUP BY {{ keys }}pattern, gpu
),
placed AS (
  SELECT {{ keys }} pattern,
    coalesce(array_to_string(array_sort(array_agg(gpu) FILTER (WHERE slow >= 10 AND slow >= 2 * expected AND {{ beyond }})), ', '), 'none') AS gpus
  FROM (SELECT *, {{ t }} AS t FROM machined)
  GROUP BY {{ keys }}pattern
),
grouped AS (
  SELECT *,
    sum(n) OVER ({{ partition_by }}) AS requests, sum(measured) OVER ({{ partition_by }}) AS all_measured,
    (limited + unavailable + timed_out) / nullif(CAST(judged AS DOUBLE), 0) AS errors_beside,
{% for column in ["at_once", "batch_size"] %}
    max(CASE WHEN pattern IS NULL THEN {{ column }} END) OVER ({{ partition_by }}) AS {{ column }}_others,
{% endfor %}
    max(CASE WHEN pattern IS NULL THEN (limited + unavailable + timed_out) / nullif(CAST(judged AS DOUBLE), 0) END) OVER ({{ partition_by }}) AS errors_others,
    greatest(queue, prefill, decode, other) AS most, coalesce(queue, 0) + coalesce(prefill, 0) + coalesce(decode, 0) + coalesce(other, 0) AS excess
  FROM counts
  WHERE level = 'group'
),
ruled AS (
  SELECT grouped.*, timing, hours, peak_hour, gpus,
    coalesce(timed.first_seen, grouped.first_seen) AS first_slow, coalesce(timed.last_seen, grouped.last_seen) AS last_slow,
    CASE WHEN most > 0 THEN CASE most {% for stage in stages %}WHEN {{ stage }} THEN '{{ stage }}' {% endfor %}END END AS stage,
    coalesce(errors_beside >= 0.01 AND errors_beside >= 3 * coalesce(errors_others, 0) AND with_errors >= 20, false) AS has_errors
  FROM grouped
  LEFT JOIN timed ON grouped.pattern = timed.pattern AND {{ same_keys("grouped", "timed") }}
  LEFT JOIN placed ON grouped.pattern = placed.pattern AND {{ same_keys("grouped", "placed") }}
  WHERE grouped.pattern IS NOT NULL
)
SELECT
  {{ labelled }}
  CASE WHEN has_errors OR gpus <> 'none' OR timing IN ('fixed hours', 'one span', 'several spans') THEN 'warning' ELSE 'info' END AS severity,
  pattern, requests, all_measured AS measured, measured AS slow, CAST(measured AS DOUBLE) / all_measured AS share,
  stage, CASE WHEN stage IS NOT NULL THEN most / excess END AS stage_share,
  timing, hours, peak_hour, first_slow AS first_seen, last_slow AS last_seen, gpus,
  at_once, at_once_others, batch_size, batch_size_others,
  input_tokens, usual_input AS input_tokens_usual, output_tokens, usual_output AS output_tokens_usual,
  errors_beside, errors_others,
  CASE
    WHEN measured < 10 THEN NULL
    WHEN has_errors AND limited >= greatest(unavailable, timed_out) THEN 'likely an upstream rate limit: 429 in the same minutes'
    WHEN has_errors AND unavailable >= timed_out THEN 'likely an upstream without capacity, or a full connection pool: 503 in the same minutes'
    WHEN has_errors THEN 'likely a full connection pool, or an upstream limit: time-outs in the same minutes'
    WHEN timing = 'fixed hours' THEN 'likely a scheduled job: slow at the same hours of day'
    WHEN gpus <> 'none' AND timing IN ('spread', 'busy hours') THEN 'likely a shared GPU: slow on few GPUs, over all the time'
    WHEN stage = 'queue' AND (at_once >= 1.5 * at_once_others OR batch_size >= 1.5 * batch_size_others)
      THEN 'likely too many requests at once: the queue grows with them'
    WHEN stage = 'prefill' AND input_tokens >= 1.5 * usual_input THEN 'likely long prompts: prefill takes the time'
    WHEN stage = 'decode' AND output_tokens >= $times * usual_output THEN 'likely long outputs: decoding takes the time'
    WHEN stage = 'decode' AND batch_size >= 1.5 * batch_size_others THEN 'likely large batches: decoding shares the memory bandwidth'
  END AS cause
FROM ruled
ORDER BY {{ sort }}severity DESC, slow DESC, {{ keys }}pattern
{{ limit }}
