-- title: Clocks of ids
-- question: Ids that hold the time they were made at: does it agree with the records, and did its clock ever go back?
-- example: clocks logs/
-- example: clocks --fail-on warning --since 24h logs/
-- sampled: records
-- param: fail_on choice never warning error | exit with 3 where a finding is at least so severe
-- column: severity | warning: numbers may be wrong
-- column: check | what was found, in ids of a form nine of ten of which lie within a month of their record (a snowflake: a day)
-- column: found ids | how many there are
-- column: of ids | among how many that could be so
-- column: share ratio | found / of
-- column: example | one of them
-- column: effect | what it does to reports
-- column: fix | what helps
{% set checks = [
  {"check": "an id's time is hours off its record's", "found": "off", "of": "near", "example": "off_example",
   "effect": "one of the two is wrong", "fix": "a whole number of hours is a zone: give the source its source_tz"},
  {"check": "the clock that ids are made from went back", "found": "back", "of": "near", "example": "back_example",
   "effect": "ids may be given twice, and do not sort by time", "fix": "slew that host's clock, do not step it"},
  {"check": "an id's number goes back while its time goes on", "found": "CASE WHEN 2 * lowered < numbered THEN lowered ELSE 0 END", "of": "numbered", "example": "CASE WHEN 2 * lowered < numbered THEN lowered_example END",
   "effect": "its clock went back, or two instances share a name", "fix": "slew that host's clock, and give each instance a name of its own"},
] %}
{% macro number(text, digits, count) %}
({% for place in range(count) %}(strpos('{{ digits }}', substr({{ text }}, {{ place + 1 }}, 1)) - 1) * {{ (digits | length) ** (count - 1 - place) }}{{ "" if loop.last else " + " }}{% endfor %})
{% endmacro %}
WITH named AS (
  SELECT request_id AS id, min(timestamp) AS timestamp, min(coalesce(host, service, '')) AS host,
    regexp_match(lower(request_id), '([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$') AS uuid,
    regexp_match(request_id, '(?:^|[-_:.])([0-7][0-9A-HJKMNP-TV-Z]{9})[0-9A-HJKMNP-TV-Z]{16}$') AS ulid,
    regexp_match(request_id, '(?:^|[-_:.])0?([0-9a-f]{11})-([0-9A-Za-z]+)-([0-9]{1,18})$') AS counted,
    regexp_match(request_id, '(?:^|[A-Za-z][-_:.]?)([1-9][0-9]{14,18})$') AS snowflake
  FROM {{ logs }}
  WHERE timestamp IS NOT NULL AND regexp_like(request_id, '[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-[89abAB]|[0-7][0-9A-Z]{25}$|[0-9a-f]{11}-[0-9A-Za-z]+-[0-9]+$|[1-9][0-9]{14,18}$')
  GROUP BY request_id
),
read AS (
  SELECT *, CASE WHEN uuid IS NOT NULL THEN 'uuid' WHEN ulid IS NOT NULL THEN 'ulid' WHEN counted IS NOT NULL THEN 'counted' ELSE 'snowflake' END AS form,
    arrow_cast(timestamp, 'Int64') / 1000000 AS seen_ms,
    CASE WHEN uuid IS NOT NULL THEN {{ number("(uuid[1] || uuid[2])", "0123456789abcdef", 12) }}
      WHEN ulid IS NOT NULL THEN {{ number("ulid[1]", "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 10) }}
      WHEN counted IS NOT NULL THEN {{ number("counted[1]", "0123456789abcdef", 11) }} END AS clock_ms,
    TRY_CAST(snowflake[1] AS BIGINT) AS flake, CAST(counted[3] AS BIGINT) AS counter
  FROM named
  WHERE coalesce(uuid, ulid, counted, snowflake) IS NOT NULL
),
made AS (
-- snowflakes count from the epoch of Twitter, which most libraries took over, or of Discord
  SELECT id, timestamp, form, counter, seen_ms,
    coalesce(clock_ms, (flake >> 22) + CASE WHEN abs((flake >> 22) + 1420070400000 - seen_ms) <= 86400000 THEN 1420070400000 ELSE 1288834974657 END) - seen_ms AS ahead_ms,
    CASE form WHEN 'counted' THEN counted[2] WHEN 'snowflake' THEN CAST((flake >> 12) & 1023 AS VARCHAR) ELSE host END AS instance
  FROM read
),
followed AS (
-- requests come late, never early: of some, the one that came soonest shows the clock
  SELECT *,
    max(ahead_ms) OVER (PARTITION BY form, instance, near ORDER BY timestamp, id ROWS BETWEEN CURRENT ROW AND 19 FOLLOWING)
      < max(ahead_ms) OVER (PARTITION BY form, instance, near ORDER BY timestamp, id ROWS BETWEEN 20 PRECEDING AND 1 PRECEDING) - 1000
      AND count(*) OVER (PARTITION BY form, instance, near ORDER BY timestamp, id ROWS BETWEEN CURRENT ROW AND 4 FOLLOWING) = 5 AS fell,
    counter > 1 AND counter < lag(counter) OVER (PARTITION BY form, instance, near ORDER BY seen_ms + ahead_ms, counter, id) AS lowered
  FROM (SELECT *, abs(ahead_ms) <= CASE form WHEN 'snowflake' THEN 86400000 ELSE 2592000000 END AS near FROM made)
),
told AS (
  SELECT *, fell AND lag(fell) OVER (PARTITION BY form, instance, near ORDER BY timestamp, id) IS NOT TRUE AS back FROM followed
),
instances AS (
-- a number that often goes back starts anew with each millisecond
  SELECT form, instance, count(*) AS n, count(*) FILTER (WHERE near) AS near,
    count(*) FILTER (WHERE near AND abs(ahead_ms) >= 3300000) AS off,
    min(CASE WHEN near AND abs(ahead_ms) >= 3300000 THEN id || ': ' || CAST(round(ahead_ms / 3600000.0, 1) AS VARCHAR) || ' h' END) AS off_example,
    count(*) FILTER (WHERE near AND back) AS back, min(CASE WHEN near AND back THEN id END) AS back_example,
    count(counter) FILTER (WHERE near) AS numbered,
    count(*) FILTER (WHERE near AND lowered) AS lowered, min(CASE WHEN near AND lowered THEN id END) AS lowered_example
  FROM told
  GROUP BY form, instance
),
trusted AS (
-- text that only looks so is nowhere near its record
  SELECT * FROM (SELECT *, 10 * sum(near) OVER (PARTITION BY form) >= 9 * sum(n) OVER (PARTITION BY form) AS clear FROM instances)
  WHERE clear
)
SELECT
{% for check in checks %}
  sum({{ check.found }}) AS found_{{ loop.index }}, sum({{ check.of }}) AS of_{{ loop.index }}, min({{ check.example }}) AS example_{{ loop.index }}{{ "" if loop.last else "," }}
{% endfor %}
FROM trusted
-- step: clocks
WITH findings AS (
{% for check in checks %}
  {{ "" if loop.first else "UNION ALL " }}SELECT {{ loop.index }} AS position, '{{ check.check | replace("'", "''") }}' AS "check",
    CAST(found_{{ loop.index }} AS BIGINT) AS found, CAST(of_{{ loop.index }} AS BIGINT) AS "of",
    example_{{ loop.index }} AS example, '{{ check.effect | replace("'", "''") }}' AS effect, '{{ check.fix | replace("'", "''") }}' AS fix FROM clocks
{% endfor %}
)
SELECT 'warning' AS severity, "check", found, "of", CAST(found AS DOUBLE) / nullif("of", 0) AS share, example, effect, fix
FROM findings
WHERE found > 0
ORDER BY {{ order }}share DESC, position
{{ limit }}
