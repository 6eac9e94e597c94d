-- One row a step as `steps`, of one logged twice the first: `unit`, `place` in its `sequence` (the steps of a request in one log), `any_gap`: the time since the step
-- before and `covers`: how many tokens that is for; `gap`: the same where it is one between two tokens, or two chunks.
-- Set before: `of_request` and `of_step`, columns of which the request's record, or the step, has the first word.
records AS (
-- a collision of ids leaves several
  SELECT {{ keyed }}*
  FROM requests
  WHERE request_id IS NOT NULL
  QUALIFY row_number() OVER (PARTITION BY request_id ORDER BY timestamp, source_file, source_offset) = 1
),
logged AS (
  SELECT {{ keyed }}*
  FROM tokens
),
read AS (
  SELECT
{% for column in dimensions | map(attribute="key") | list + of_request %}
    coalesce(records.{{ column }}, logged.{{ column }}) AS {{ column }},
{% endfor %}
{% for column in of_step %}
    coalesce(logged.{{ column }}, records.{{ column }}) AS {{ column }},
{% endfor %}
    logged.request_id, logged.source_offset, logged.timestamp, token_index, gap_ms, step_ms, wait_ms, context_len, logged.cache_hit, recompute, unit = 'chunk' AS is_declared,
    concat(logged.request_id, chr(31), logged.role, chr(31), logged.attempt, chr(31), logged.source_file, chr(31),
      CASE WHEN logged.request_id IS NULL THEN logged.source_offset END, chr(31), unit) AS sequence,
-- in years that there are, so that a difference cannot overflow
{% for name, time in [("arrived", "records.timestamp"), ("at", "logged.timestamp")] %}
    CASE WHEN {{ time }} BETWEEN '1970-01-01T00:00:00Z' AND '2100-01-01T00:00:00Z' THEN arrow_cast({{ time }}, 'Int64') END AS {{ name }}{{ "" if loop.last else "," }}
{% endfor %}
-- the side that the engine keeps in memory comes first; a condition on requests holds for no step whose request is unknown
  FROM records
  {{ "JOIN" if is_narrowed else "RIGHT JOIN" }} logged ON records.request_id = logged.request_id
),
ordered AS (
  SELECT *, row_number() OVER stream AS place, lag(token_index) OVER stream AS index_before, lag(at) OVER stream AS at_before
  FROM read
-- copies in one list differ in their times alone, if at all
  WINDOW stream AS (PARTITION BY sequence ORDER BY token_index, timestamp, source_offset, step_ms, wait_ms)
),
gapped AS (
  SELECT *,
    CASE WHEN gap_ms IS NOT NULL THEN gap_ms WHEN place = 1 THEN NULL
      WHEN at < at_before THEN NULL
      WHEN at >= at_before THEN (at - at_before) / 1e6
      ELSE step_ms END AS any_gap,
    CASE WHEN gap_ms IS NULL AND at >= at_before THEN token_index - index_before ELSE 1 END AS covers
  FROM ordered
  WHERE place = 1 OR gap_ms IS NOT NULL OR token_index > index_before
),
counted AS (
  SELECT *, CASE WHEN is_declared OR 2 * count(CASE WHEN covers > 1 THEN 1 END) OVER whole > count(any_gap) OVER whole THEN 'chunk' ELSE 'token' END AS unit
  FROM gapped
  WINDOW whole AS (PARTITION BY sequence)
),
steps AS (
  SELECT *, CASE WHEN unit = 'chunk' OR covers = 1 THEN any_gap END AS gap
  FROM counted
),
