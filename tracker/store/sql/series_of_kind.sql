-- Which series of a kind does this line have? One row per series.
-- Parameters: workload_id, configuration_id, device_id; kind
-- Columns: series_id; metric
SELECT
    s.id AS series_id,
    s.metric
FROM series AS s
WHERE
    s.workload_id = :workload_id
    AND s.configuration_id = :configuration_id
    AND s.device_id = :device_id
    AND s.kind = :kind
ORDER BY s.id
