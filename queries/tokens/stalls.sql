-- title: Stalls
-- question: What makes single tokens come late, and how much time does that take?
-- example: tokens stalls logs/
-- example: tokens stalls --by gpu --times 10 --least-excess 200 logs/
-- sampled: records
-- param: by dimensions | what to group by, besides the cause: as the record of the request says, else as the step does
-- param: window integer 31 9..301 | so many steps around a step, itself among them, tell what is usual there; fewer at either end of a request
-- param: times number 6 0..1000 | a stall is longer than the median around it by more than so many standard deviations, 1.4826 x MAD
-- param: least_excess number 50 0..1000000000 | and by so many ms at least; where MAD is 0 (most gaps around are equal) this alone decides
-- param: ahead span 50ms | an event counts that came within the gap, or so long ahead of it
-- param: beside span 50ms | requests of the same batch or GPU whose stalls end within this are neighbours
-- param: percentiles percentiles 50,95 | of the excess
-- column: cause | the first that holds: recompute: the step was computed again; cache miss: it missed the cache, and most steps of its request did not; wait: it waited for half of the excess or more; event: one on the same GPU, or that names the request, came with it; neighbours: 2 other requests or more of its batch or GPU stalled at the same moment; else unknown
-- column: event | which event, where that is the cause; else none
-- column: measured stalls | gaps much longer than those around, as the parameters say; median and MAD are by nearest rank, of requests with 5 gaps or more; gaps between chunks too, where chunks are what is logged
-- column: stall_share ratio | part of all stalls in the rows
-- column: requests requests | requests with such a stall
-- column: excess_ms ms | sum of excess: gap - the median around it
-- column: excess_share ratio | part of the excess of all stalls in the rows
-- column: p*_ms ms | percentile of the excess
-- column: max_ms ms | the largest excess
-- column: places_known stalls | of them whose time is known, and whose batch or GPU: of others nobody knows the neighbours
-- total: measured places_known
{% set of_request = [] %}
{% set of_step = ["batch_size", "model_name", "gpu_id", "host", "batch_id"] %}
WITH
{% include "parts/gaps.sql" %}
{% include "parts/stalls.sql" %}
{% include "parts/causes.sql" %}
WITH caused AS (
  SELECT {{ keys }}cause, CASE cause WHEN 'event' THEN event ELSE 'none' END AS event, request_id, excess, neighbours
  FROM stalls
),
grouped AS (
  SELECT {{ keys }}cause, event, count(*) AS measured, count(DISTINCT request_id) AS requests, exact_sum(excess) AS excess_ms,
    percentiles(excess, $percentiles) AS percentiles, max(excess) AS max_ms, count(neighbours) AS places_known
  FROM caused
  GROUP BY {{ keys }}cause, event
)
SELECT {{ labelled }}cause, event, measured, CAST(measured AS DOUBLE) / sum(measured) OVER () AS stall_share, requests, excess_ms, excess_ms / exact_sum(excess_ms) OVER () AS excess_share,
{% for percentile in percentiles %}
  percentiles[{{ loop.index }}] AS {{ percentile.name }}_ms,
{% endfor %}
  max_ms, places_known
FROM grouped
ORDER BY {{ order }}excess_ms DESC, cause, event
{{ limit }}
