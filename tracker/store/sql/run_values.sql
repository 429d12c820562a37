-- What is judged of this run? One row per series.
-- Parameters: run_id
-- Columns: series_id; value: per step, ns, bytes or samples per second; calls: per step, NULL: not counted;
--   by_quartile, by_median: the value, had each call taken the lower quartile, or the median, of the calls of its row,
--   NULL: not known
SELECT
    d.series_id,
    d.value,
    d.calls,
    d.by_quartile,
    d.by_median
FROM sample AS d
WHERE d.run_id = :run_id
ORDER BY d.series_id
