-- Which families of series does this line have? One row per kind and metric.
-- Parameters: workload_id, configuration_id, device_id
-- Columns: kind, metric
SELECT DISTINCT
    s.kind,
    s.metric
FROM series AS s
WHERE
    s.workload_id = :workload_id
    AND s.configuration_id = :configuration_id
    AND s.device_id = :device_id
ORDER BY s.kind, s.metric
