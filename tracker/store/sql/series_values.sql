-- What do runs from one to another say of these series? One row per series and run.
-- Parameters: series_ids (list); first_run_id, last_run_id: the numbers between which the runs are
-- Columns: run_id, series_id; value: what is judged, per step
SELECT
    d.run_id,
    d.series_id,
    d.value
FROM sample AS d
WHERE
    d.series_id IN :series_ids
    AND d.run_id BETWEEN :first_run_id AND :last_run_id
ORDER BY d.series_id, d.run_id
