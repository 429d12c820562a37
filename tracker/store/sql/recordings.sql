-- How were these runs recorded? One row per run, key and value.
-- Parameters: ids (a JSON object whose keys are the runs)
-- Columns: run_id; key: settings (of the profiler, JSON), timeline, format, steps (of the captures), schema (of the
--   trace), rules (that made names and categories); value: text. steps is marked where a capture has more than one
--   step, or one that does not last as long as the capture, else unmarked
SELECT
    said.run_id,
    said.key,
    said.value
FROM (
    SELECT DISTINCT
        c.run_id,
        'settings' AS key,
        c.settings AS value
    FROM capture AS c
    WHERE c.run_id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)

    UNION ALL

    SELECT
        c.run_id,
        'timeline' AS key,
        MIN(c.timeline) AS value
    FROM capture AS c
    WHERE c.run_id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)
    GROUP BY c.run_id

    UNION ALL

    SELECT
        c.run_id,
        'steps' AS key,
        MIN(
            CASE
                WHEN
                    EXISTS (
                        SELECT 1
                        FROM step AS s
                        WHERE
                            s.run_id = c.run_id AND s.rank = c.rank
                            AND (s.step <> 0 OR s.duration_ns <> c.duration_ns)
                    )
                    THEN 'marked'
                ELSE 'unmarked'
            END
        ) AS value
    FROM capture AS c
    WHERE c.run_id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)
    GROUP BY c.run_id

    UNION ALL

    SELECT DISTINCT
        s.run_id,
        'format' AS key,
        s.format AS value
    FROM source AS s
    WHERE s.run_id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)

    UNION ALL

    SELECT
        f.run_id,
        'schema' AS key,
        f.value
    FROM run_fact AS f
    WHERE
        f.run_id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)
        AND f.kind = 'fact' AND f.key = 'trace_schema_version'

    UNION ALL

    SELECT
        r.id AS run_id,
        'rules' AS key,
        CAST(r.rules_version AS TEXT) AS value
    FROM run AS r
    WHERE
        r.id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)
        AND r.rules_version IS NOT NULL
) AS said
ORDER BY said.run_id, said.key, said.value
