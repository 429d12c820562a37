-- Which series of a line drifted from the pinned version? One row per series of a version.
-- Parameters: version_id; workload_id, configuration_id, device_id
-- Columns: series_id; kind, metric, name, input_shapes, part: of the series; pinned_diff, pinned_contribution,
--   pinned_verdict: see the table diff_history
SELECT
    d.series_id,
    s.kind,
    s.metric,
    s.name,
    s.input_shapes,
    s.part,
    d.pinned_diff,
    d.pinned_contribution,
    d.pinned_verdict
FROM diff_history AS d
INNER JOIN series AS s ON d.series_id = s.id
WHERE
    d.version_id = :version_id
    AND s.workload_id = :workload_id
    AND s.configuration_id = :configuration_id
    AND s.device_id = :device_id
    AND d.pinned_verdict IS NOT NULL
ORDER BY ABS(COALESCE(d.pinned_contribution, 0)) DESC, s.kind, s.name, s.input_shapes, s.part, d.series_id
