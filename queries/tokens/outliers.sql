-- title: Stalled tokens
-- question: Which single tokens came far too late, and what happened there?
-- example: tokens outliers --top 20 logs/
-- example: tokens outliers --where "request_id = 'req-stall-06'" logs/
-- sampled: records
-- param: window integer 31 9..301 | so many steps around a step, itself among them, tell what is usual there; fewer at either end of a request
-- param: times number 6 0..1000 | a stall is longer than the median around it by more than so many standard deviations, 1.4826 x MAD
-- param: least_excess number 50 0..1000000000 | and by so many ms at least; where MAD is 0 (most gaps around are equal) this alone decides
-- param: ahead span 50ms | an event counts that came within the gap, or so long ahead of it
-- param: beside span 50ms | requests of the same batch or GPU whose stalls end within this are neighbours
-- column: request_id | the request
-- column: token_index tokens | index of the token, or of the chunk
-- column: unit | token, or chunk: a step that may be several tokens
-- column: timestamp | when it was there
-- column: model | the model that answered
-- column: gap_ms ms | time since the step before
-- column: around_ms ms | median of the gaps around it, by nearest rank
-- column: excess_ms ms | gap_ms - around_ms
-- column: cause | the first that holds: recompute: the step was computed again; cache miss: it missed the cache, and most steps of its request did not; wait: it waited for half of the excess or more; event: one on the same GPU, or that names the request, came with it; neighbours: 2 other requests or more of its batch or GPU stalled at the same moment; else unknown
-- column: event | the first event on the same GPU, or that names the request, that came with it; null where the time is unknown
-- column: neighbours requests | other requests of its batch or GPU that stalled at the same moment; null where its time, or batch and GPU, are unknown
-- column: wait_ms ms | wait before the step
-- column: cache_hit | whether the step hit the cache; a request's own word on its prefix is none
-- column: recompute | whether it was computed again
-- column: context_len tokens | length of the context at this step
-- column: batch_size requests | requests in its batch
-- column: gpu | the GPU
-- detail: wait_ms cache_hit recompute context_len batch_size gpu
{% set of_request = [] %}
{% set of_step = ["batch_size", "model_name", "gpu_id", "host", "batch_id"] %}
WITH
{% include "parts/gaps.sql" %}
{% include "parts/stalls.sql" %}
{% include "parts/causes.sql" %}
SELECT request_id, token_index, unit, timestamp, model_name AS model, gap AS gap_ms, around AS around_ms, excess AS excess_ms, cause, coalesce(event, CASE WHEN at IS NOT NULL THEN 'none' END) AS event,
  neighbours, wait_ms, cache_hit, recompute, context_len, batch_size, gpu_id AS gpu
FROM stalls
ORDER BY {{ order }}excess DESC, stall
{{ limit if limit else "LIMIT 10" }}
