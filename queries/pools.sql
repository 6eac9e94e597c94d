-- title: GPU pools
-- question: How many GPUs does each pool need, by the load that one carried while it kept a limit of latency?
-- example: pools --metric ttft --limit 500ms logs/
-- example: pools --per-gpu 800 --headroom 0.3 logs/
-- sampled: refused
-- param: by dimensions gpu-pool | what to group by: requests without a pool are a group of their own
-- param: metric metric total | the duration that the limit is for; total grows with the length of answers, ttft and tpot tell more of load
-- param: limit span | the longest that the percentile of the metric may be; without it, and without --per-gpu, only the demand is shown
-- param: percentile number 99 0..100 | the percentile that has to keep the limit, by nearest rank
-- param: headroom number 0.2 0..100 | spare part that is added to the demand
-- param: per_gpu number 0.001..1000000000 | tokens/s that one GPU sustains, as you know it, instead of what the logs show
-- param: min_count integer 100 1..1000000000 | measured requests that a load class needs to be judged
-- param: tokens_at choice spread start | spread the tokens of a request evenly from its arrival to its end (up to a day), or count them when it arrives
-- param: include_failed flag false | measure failed requests too
-- column: requests requests | all requests of the group
-- column: counted requests | of them with a time and known tokens: the load is theirs
-- column: left_out requests | of them not counted
-- column: measured requests | of them with a time, a GPU id and a known duration, and not failed: the latency is theirs
-- column: gpus | different GPU ids
-- column: gpus_at_once | the most of them that had a request in one minute
-- column: gpu_minutes min | minutes of GPUs with a load
-- column: sustained tokens/s | what one GPU sustains: --per-gpu, else the median load that the requests of the highest class that kept the limit met
-- column: sustained_by | given; limit: a class above was judged and did not keep the limit; seen: no class above was judged, so that a GPU may sustain more
-- column: load_class | that class, 1 to 10: measured requests are sorted by what the others make the GPU do in the minute of their arrival, and cut into tenths
-- column: kept ratio | measured requests of that class within the limit / measured requests of that class
-- column: judged | classes with enough measured requests
-- column: broken | judged classes that did not keep the limit
-- column: demand tokens/s | tokens/s of the group's peak minute, its requests without a GPU id included
-- column: demand_at | the start of that minute
-- column: demand_p99 tokens/s | 99th percentile, by nearest rank, of all minutes from the group's first to its last, empty ones too
-- column: needed | GPUs for the peak minute: demand / sustained x (1 + headroom), rounded up; where sustained_by is seen, at most so many
-- column: needed_p99 | the same for demand_p99
-- column: util_p50 | median of the minutes of GPUs: mean of the GPU utilisation logged in each, as written; null where none is logged
-- column: util_p95 | 95th percentile of the same
-- column: status | ok; short (needed is above gpus_at_once); unproven (so it is, but no higher load was judged); else why there is no answer
-- total: requests counted left_out
{% macro listed(table) %}{% for dimension in dimensions %}{{ table }}.{{ dimension.key }}, {% endfor %}{% endmacro %}
WITH read AS (
  SELECT
    {{ keyed }}
    gpu_id, gpu_util, timestamp AS arrived,
    {{ ended }} AS ended,
    CASE WHEN input_tokens IS NOT NULL OR output_tokens IS NOT NULL
      THEN CAST(coalesce(input_tokens, 0) AS DOUBLE) + coalesce(output_tokens, 0) END AS tokens,
    {{ metric[0].column if include_failed else "CASE WHEN failed IS NOT TRUE THEN " ~ metric[0].column ~ " END" }} AS measure
  FROM {{ logs }}
),
timed AS (
  SELECT *,
    arrow_cast(arrived, 'Int64') AS start_ns, arrow_cast(local_period(arrived, 'minute', $zone, $week_start), 'Int64') AS minute_ns,
{% if tokens_at == "spread" %}
    CASE WHEN arrow_cast(ended, 'Int64') - arrow_cast(arrived, 'Int64') BETWEEN 1 AND 86400000000000
      THEN arrow_cast(ended, 'Int64') - arrow_cast(arrived, 'Int64') ELSE 0 END AS length_ns
{% else %}
    0 AS length_ns
{% endif %}
  FROM read
),
pieces AS (
-- one for each minute that the request runs in
  SELECT *,
    unnest(range(0, coalesce(CASE WHEN length_ns > 0 AND tokens > 0 THEN (start_ns - minute_ns + length_ns - 1) / 60000000000 END, 0) + 1)) AS piece
  FROM timed
),
placed AS (
  SELECT
    {{ keys }}
    gpu_id, piece, measure, gpu_util, tokens, minute_ns + piece * 60000000000 AS minute,
    CASE WHEN length_ns = 0 OR tokens = 0 THEN tokens
      ELSE tokens * ((least(start_ns + length_ns, minute_ns + (piece + 1) * 60000000000) - greatest(start_ns, minute_ns + piece * 60000000000))
        / CAST(length_ns AS DOUBLE)) END AS part
  FROM pieces
)
-- `own` is about what each of these requests adds to the load: up to 64 tokens in the minute, up to 128, ...
SELECT
  {{ keys }}
  gpu_id, arrow_cast(minute, 'Timestamp(Nanosecond, Some("UTC"))') AS minute,
  CASE WHEN piece = 0
    THEN bucket(TRY_CAST(part AS BIGINT), [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]) ELSE -1 END AS own,
  count(*) FILTER (WHERE piece = 0) AS requests,
  count(tokens) FILTER (WHERE piece = 0 AND minute IS NOT NULL) AS counted,
  count(measure) FILTER (WHERE piece = 0 AND minute IS NOT NULL AND gpu_id IS NOT NULL) AS measured,
-- that so many are within the limit says the same as their percentile, without all of them being kept
  count(*) FILTER (WHERE piece = 0 AND measure <= CAST($limit AS DOUBLE)) AS within,
  exact_sum(part) / 60 AS load,
  coalesce(exact_mean(CASE WHEN piece = 0 THEN part END) / 60, 0) AS own_load,
  exact_sum(CASE WHEN piece = 0 THEN gpu_util END) AS util, count(gpu_util) FILTER (WHERE piece = 0) AS with_util
FROM placed
GROUP BY {{ keys }}gpu_id, minute, own
-- step: minutes
WITH gpu_minutes AS (
  SELECT {{ keys }} gpu_id, minute, exact_sum(load) AS load, exact_sum(util) / nullif(sum(with_util), 0) AS util
  FROM minutes
  GROUP BY {{ keys }}gpu_id, minute
),
met AS (
-- A request is judged by the load of the others: its own length makes both load and latency.
  SELECT {{ listed("minutes") }} gpu_minutes.load, round(greatest(gpu_minutes.load - own_load, 0), 6) AS others, measured, within
  FROM minutes
  JOIN gpu_minutes ON {{ same_keys("minutes", "gpu_minutes") }} AND minutes.gpu_id = gpu_minutes.gpu_id AND minutes.minute = gpu_minutes.minute
  WHERE gpu_minutes.load > 0 AND measured > 0
),
placed AS (
  SELECT {{ keys }} load, others, sum(measured) AS measured, sum(within) AS within FROM met GROUP BY {{ keys }}load, others
),
classed AS (
  SELECT *,
    (sum(measured) OVER ({{ partition_by }} ORDER BY others) - sum(measured) OVER (PARTITION BY {{ keys }}others)) * 10
      / sum(measured) OVER ({{ partition_by }}) + 1 AS load_class
  FROM placed
),
halved AS (
  SELECT *,
    2 * sum(measured) OVER (PARTITION BY {{ keys }}load_class ORDER BY load) >= sum(measured) OVER (PARTITION BY {{ keys }}load_class) AS is_upper
  FROM classed
),
classes AS (
  SELECT {{ keys }} load_class, min(CASE WHEN is_upper THEN load END) AS load, CAST(sum(within) AS DOUBLE) / sum(measured) AS kept,
    sum(measured) >= $min_count AND $limit IS NOT NULL AS is_judged,
    sum(measured) >= $min_count AND $limit IS NOT NULL AND sum(within) * 100 >= $percentile * sum(measured) AS is_kept
  FROM halved
  GROUP BY {{ keys }}load_class
),
chosen AS (
  SELECT {{ keys }}
    count(*) FILTER (WHERE is_judged) AS judged, count(*) FILTER (WHERE is_judged AND NOT is_kept) AS broken,
    max(load_class) FILTER (WHERE is_judged) AS last_judged, max(load_class) FILTER (WHERE is_kept) AS load_class,
    first_value(load ORDER BY is_kept DESC, load_class DESC) AS load, first_value(kept ORDER BY is_kept DESC, load_class DESC) AS kept
  FROM classes
  {{ group_by }}
),
totals AS (
  SELECT
    {{ keys }}
    minute, CAST(round(arrow_cast(minute, 'Int64') / 60000000000.0) AS BIGINT) AS number, exact_sum(load) AS load, count(gpu_id) AS gpus,
    count(CASE WHEN load > 0 THEN gpu_id END) AS loaded
  FROM gpu_minutes
  WHERE minute IS NOT NULL
  GROUP BY {{ keys }}minute
),
ranked AS (
-- of all minutes 1 % may have more than the 99th percentile
  SELECT *, row_number() OVER ({{ partition_by }} ORDER BY load DESC NULLS LAST, minute) AS place,
    (max(number) OVER ({{ partition_by }}) - min(number) OVER ({{ partition_by }}) + 1) / 100 + 1 AS usual_place
  FROM totals
),
demands AS (
  SELECT {{ keys }} max(load) AS demand, first_value(minute ORDER BY place) AS demand_at,
    coalesce(max(CASE WHEN place = usual_place THEN load END), 0) AS demand_p99, max(gpus) AS gpus_at_once, CAST(sum(loaded) AS BIGINT) AS gpu_minutes
  FROM ranked
  {{ group_by }}
),
pools AS (
  SELECT
    {{ keys }}
    coalesce(CAST(sum(requests) AS BIGINT), 0) AS requests, coalesce(CAST(sum(counted) AS BIGINT), 0) AS counted,
    coalesce(CAST(sum(measured) AS BIGINT), 0) AS measured, count(DISTINCT gpu_id) AS gpus
  FROM minutes
  {{ group_by }}
),
used AS (
  SELECT {{ keys }} percentiles(util, [0.5, 0.95]) AS utils FROM gpu_minutes {{ group_by }}
),
joined AS (
  SELECT pools.*, utils, coalesce(gpu_minutes, 0) AS gpu_minutes, demand, CASE WHEN demand IS NOT NULL THEN demand_at END AS demand_at,
    CASE WHEN demand IS NOT NULL THEN demand_p99 END AS demand_p99, coalesce(gpus_at_once, 0) AS gpus_at_once,
    CASE WHEN $limit IS NOT NULL THEN coalesce(judged, 0) END AS judged, CASE WHEN $limit IS NOT NULL THEN coalesce(broken, 0) END AS broken,
    load_class, last_judged, CASE WHEN load_class IS NOT NULL THEN kept END AS kept,
    coalesce(CAST($per_gpu AS DOUBLE), CASE WHEN load_class IS NOT NULL THEN load END) AS sustained
  FROM pools
  JOIN used ON {{ same_keys("pools", "used") }}
  LEFT JOIN demands ON {{ same_keys("pools", "demands") }}
  LEFT JOIN chosen ON {{ same_keys("pools", "chosen") }}
),
needing AS (
  SELECT *,
    CASE WHEN $per_gpu IS NOT NULL THEN 'given' WHEN load_class < last_judged THEN 'limit' WHEN load_class IS NOT NULL THEN 'seen' END AS sustained_by,
-- without the last digits, so that exactly two are not three
    TRY_CAST(ceil(round(demand / sustained * (1 + $headroom), 9)) AS BIGINT) AS needed,
    TRY_CAST(ceil(round(demand_p99 / sustained * (1 + $headroom), 9)) AS BIGINT) AS needed_p99
  FROM joined
)
SELECT
  {{ labelled }}
  requests, counted, requests - counted AS left_out, measured, gpus, gpus_at_once, gpu_minutes,
  sustained, sustained_by, load_class, kept, judged, broken, demand, demand_at, demand_p99, needed, needed_p99,
  utils[1] AS util_p50, utils[2] AS util_p95,
  CASE
    WHEN gpus = 0 THEN 'no GPU ids'
    WHEN demand IS NULL THEN 'no tokens'
    WHEN sustained IS NOT NULL THEN
      CASE WHEN needed <= gpus_at_once THEN 'ok' WHEN sustained_by = 'seen' THEN 'unproven' ELSE 'short' END
    WHEN $limit IS NULL THEN 'no limit given'
    WHEN judged = 0 THEN 'too few requests'
    ELSE 'limit never kept'
  END AS status
FROM needing
ORDER BY {{ order }}requests
{{ limit }}
