-- How was this version of a line judged against the runs before it? One row per series.
-- Parameters: version_id; workload_id, configuration_id, device_id
-- Columns: series_id; kind, metric, name, input_shapes, part: of the series; baseline_diff, baseline_p, baseline_q,
--   baseline_contribution, baseline_verdict, calls_verdict, detectable, reason: see the table diff_history
SELECT
    d.series_id,
    s.kind,
    s.metric,
    s.name,
    s.input_shapes,
    s.part,
    d.baseline_diff,
    d.baseline_p,
    d.baseline_q,
    d.baseline_contribution,
    d.baseline_verdict,
    d.calls_verdict,
    d.detectable,
    d.reason
FROM diff_history AS d
INNER JOIN series AS s ON d.series_id = s.id
WHERE
    d.version_id = :version_id
    AND s.workload_id = :workload_id
    AND s.configuration_id = :configuration_id
    AND s.device_id = :device_id
    AND d.baseline_verdict IS NOT NULL
ORDER BY d.series_id
