-- What do these runs say of these series? One row per run and series.
-- Parameters: run_ids (list); series_ids (list)
-- Columns: run_id, series_id; value: what is judged, per step
SELECT
    d.run_id,
    d.series_id,
    d.value
FROM sample AS d
WHERE
    d.run_id IN :run_ids
    AND d.series_id IN :series_ids
ORDER BY d.run_id, d.series_id
