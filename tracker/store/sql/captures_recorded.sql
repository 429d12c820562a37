-- How do the captures of these runs say they were recorded? One row per run, per settings of its profiler and per
-- format of its sources. Asked once, when captures come in; what it says is kept with the run.
-- Parameters: ids (a JSON object whose keys are the runs)
-- Columns: run_id; settings (of the profiler, JSON), timeline and step_markers: of the captures that have them; format:
--   of a source, NULL for captures of the other ranks of one; trace_schema, rules_version (of the rules that made names
--   and categories): of the run, NULL where unknown. step_markers is marked where a capture has more than one step, or
--   one that does not last as long as the capture, else unmarked
SELECT
    c.run_id,
    c.settings,
    MIN(c.timeline) AS timeline,
    MIN(
        CASE
            WHEN
                EXISTS (
                    SELECT 1
                    FROM step AS p
                    WHERE
                        p.run_id = c.run_id AND p.rank = c.rank
                        AND (p.step <> 0 OR p.duration_ns <> c.duration_ns)
                )
                THEN 'marked'
            ELSE 'unmarked'
        END
    ) AS step_markers,
    s.format,
    f.value AS trace_schema,
    r.rules_version
FROM capture AS c
INNER JOIN run AS r ON c.run_id = r.id
LEFT JOIN source AS s ON c.run_id = s.run_id AND c.rank = s.rank
LEFT JOIN run_fact AS f ON c.run_id = f.run_id AND f.kind = 'fact' AND f.key = 'trace_schema_version'
WHERE c.run_id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)
GROUP BY c.run_id, c.settings, s.format, f.value, r.rules_version
ORDER BY c.run_id, c.settings, s.format
