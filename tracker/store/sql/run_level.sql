-- What do these runs say of themselves as a whole? One row per run and run-level series.
-- Parameters: run_ids (list)
-- Columns: run_id, series_id; name, metric, part, step_kind: of the series; per_step: the value that is judged, ns,
--   bytes or samples per second
SELECT
    d.run_id,
    d.series_id,
    s.name,
    s.metric,
    s.part,
    s.step_kind,
    d.value AS per_step
FROM sample AS d
INNER JOIN series AS s ON d.series_id = s.id
WHERE
    d.run_id IN :run_ids
    AND s.kind = 'run'
ORDER BY d.run_id, s.name, s.part, s.step_kind, d.series_id
