-- What is judged of this run? One row per series.
-- Parameters: run_id
-- Columns: series_id; value: per step, ns, bytes or samples per second; calls: per step, NULL: not counted; p10: over
--   the steps, NULL: not known
SELECT
    d.series_id,
    d.value,
    d.calls,
    d.p10
FROM sample AS d
WHERE d.run_id = :run_id
ORDER BY d.series_id
