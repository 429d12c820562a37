-- Which series does this track have? One row per series.
-- Parameters: workload_id, configuration_id, device_id; name (NULL = all)
-- Columns: series_id; kind, metric: its family; name, input_shapes, part, step_kind
SELECT
    s.id AS series_id,
    s.kind,
    s.metric,
    s.name,
    s.input_shapes,
    s.part,
    s.step_kind
FROM series AS s
WHERE
    s.workload_id = :workload_id
    AND s.configuration_id = :configuration_id
    AND s.device_id = :device_id
    AND (CAST(:name AS TEXT) IS NULL OR s.name = :name)
ORDER BY s.id
