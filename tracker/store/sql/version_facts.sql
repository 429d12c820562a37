-- What changed for certain with a version? One row per series of a track and what.
-- Parameters: workload_id, configuration_id, device_id, version_id
-- Columns: series_id, kind, metric, name, input_shapes, part, step_kind: of the series; what: calls (per step) or
--   bytes; value_before, value_after
SELECT
    s.id AS series_id,
    s.kind,
    s.metric,
    s.name,
    s.input_shapes,
    s.part,
    s.step_kind,
    f.what,
    f.value_before,
    f.value_after
FROM fact AS f
INNER JOIN series AS s ON f.series_id = s.id
WHERE
    f.version_id = :version_id
    AND s.workload_id = :workload_id
    AND s.configuration_id = :configuration_id
    AND s.device_id = :device_id
ORDER BY s.id, f.what
