-- What do runs, in whatever state, say of these series? One row per series and run.
-- Parameters: series_ids (list)
-- Columns: series_id, run_id; per_step: the value that is judged; minimum, maximum: over the steps; calls_per_step;
--   rank_spread; steps; intermittent: see the table sample
SELECT
    d.series_id,
    d.run_id,
    d.value AS per_step,
    d.min AS minimum,
    d.max AS maximum,
    d.calls AS calls_per_step,
    d.rank_spread,
    d.steps,
    d.intermittent
FROM sample AS d
WHERE d.series_id IN :series_ids
ORDER BY d.series_id, d.run_id
