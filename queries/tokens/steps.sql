-- title: Token steps
-- question: How many steps stall, miss the cache or are computed again?
-- example: tokens steps --by model logs/
-- sampled: records
-- param: by dimensions | what to group by: as the record of the request says, else as the step does
-- param: window integer 31 9..301 | so many steps around a step, itself among them, tell what is usual there; fewer at either end of a request
-- param: times number 6 0..1000 | a stall is longer than the median around it by more than so many standard deviations, 1.4826 x MAD
-- param: least_excess number 50 0..1000000000 | and by so many ms at least; where MAD is 0 (most gaps around are equal) this alone decides
-- pivot: stalls_per_1k
-- column: unit | token: one step is one token; chunk: a step may be several, as the log says, or as most steps of the request go on by more than one index
-- column: requests requests | requests with steps, counted once for each log and role that has them
-- column: steps steps | steps of these requests; of one logged twice the first
-- column: gaps gaps | times between two steps that are known; one over missing steps is unknown
-- column: judged gaps | of them those of requests with 5 or more: only these can be stalls
-- column: stalls stalls | judged gaps that are stalls, as the parameters say; median and MAD are by nearest rank
-- column: stalls_per_1k | stalls / 1,000 judged gaps: of tokens, or of chunks
-- column: stalled_requests requests | requests with a stall
-- column: excess_ms ms | sum of stalls - the median around each
-- column: excess_share ratio | excess_ms / sum of the known gaps
-- column: cache_known steps | steps that say whether they hit the cache; a request's own word on its prefix is none
-- column: misses steps | of them that missed it
-- column: miss_share ratio | misses / cache_known
-- column: recompute_known steps | steps that say whether they were computed again
-- column: recomputes steps | of them that were
-- column: recompute_share ratio | recomputes / recompute_known
-- total: requests steps gaps judged stalls stalled_requests cache_known misses recompute_known recomputes
-- detail: cache_known misses miss_share recompute_known recomputes recompute_share
{% set of_request = [] %}
{% set of_step = [] %}
WITH
{% include "parts/gaps.sql" %}
{% include "parts/stalls.sql" %}
each AS (
  SELECT {{ keys }}unit, sequence,
    count(*) AS steps, count(gap) AS gaps, count(gap) FILTER (WHERE whole_gaps >= 5) AS judged, count(*) FILTER (WHERE is_stall) AS stalls,
    exact_sum(excess) FILTER (WHERE is_stall) AS excess, exact_sum(gap) AS time,
    count(cache_hit) AS cache_known, count(*) FILTER (WHERE NOT cache_hit) AS misses, count(recompute) AS recompute_known, count(*) FILTER (WHERE recompute) AS recomputes
  FROM judged
  GROUP BY {{ keys }}unit, sequence
),
grouped AS (
  SELECT {{ keys }}unit, count(*) AS requests,
{% for column in ["steps", "gaps", "judged", "stalls", "cache_known", "misses", "recompute_known", "recomputes"] %}
    CAST(sum({{ column }}) AS BIGINT) AS {{ column }},
{% endfor %}
    count(*) FILTER (WHERE stalls > 0) AS stalled_requests, CASE WHEN sum(each.judged) > 0 THEN coalesce(exact_sum(excess), 0.0) END AS excess_ms, exact_sum(time) AS time
  FROM each
  GROUP BY {{ keys }}unit
)
SELECT {{ labelled }}unit, requests, steps, gaps, judged, stalls, 1000.0 * stalls / nullif(judged, 0) AS stalls_per_1k, stalled_requests, excess_ms, excess_ms / nullif(time, 0) AS excess_share,
  cache_known, misses, CAST(misses AS DOUBLE) / nullif(cache_known, 0) AS miss_share, recompute_known, recomputes, CAST(recomputes AS DOUBLE) / nullif(recompute_known, 0) AS recompute_share
FROM grouped
ORDER BY {{ order }}unit DESC
{{ limit }}
