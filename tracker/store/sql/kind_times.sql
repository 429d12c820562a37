-- How long did the steps of each kind take together in these runs? One row per kind.
-- Parameters: run_ids (list)
-- Columns: step_kind; total_ns
SELECT
    s.step_kind,
    SUM(m.mean * m.steps) AS total_ns
FROM sample AS m
INNER JOIN series AS s ON m.series_id = s.id
WHERE
    m.run_id IN :run_ids
    AND s.kind = 'run'
    AND s.name = 'step'
    AND s.part = ''
    AND s.step_kind <> ''
GROUP BY s.step_kind
ORDER BY s.step_kind
