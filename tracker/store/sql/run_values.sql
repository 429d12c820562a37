-- What is judged of these runs? One row per run and series.
-- Parameters: run_ids (list)
-- Columns: run_id, series_id; value: per step, ns, bytes or samples per second; calls: per step, NULL: not counted
SELECT
    d.run_id,
    d.series_id,
    d.value,
    d.calls
FROM sample AS d
WHERE d.run_id IN :run_ids
ORDER BY d.run_id, d.series_id
