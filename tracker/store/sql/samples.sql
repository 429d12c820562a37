-- What do these runs say of their series? One row per run and series.
-- Parameters: run_ids (list)
-- Columns: run_id, series_id; kind, metric, name, input_shapes, part, step_kind: of the series; per_step: the value
--   that is judged; mean, sd, min, p10, p90, max: over the steps; calls_per_step; share: of the step; rank_spread;
--   steps; intermittent, by_quartile, by_median: see the table sample. Times in ns, sizes in bytes, per step
SELECT
    d.run_id,
    d.series_id,
    s.kind,
    s.metric,
    s.name,
    s.input_shapes,
    s.part,
    s.step_kind,
    d.value AS per_step,
    d.mean,
    d.sd,
    d.min,
    d.p10,
    d.p90,
    d.max,
    d.calls AS calls_per_step,
    d.share,
    d.rank_spread,
    d.steps,
    d.intermittent,
    d.by_quartile,
    d.by_median
FROM sample AS d
INNER JOIN series AS s ON d.series_id = s.id
WHERE d.run_id IN :run_ids
ORDER BY d.run_id, s.kind, s.metric, s.name, s.input_shapes, s.part, s.step_kind
