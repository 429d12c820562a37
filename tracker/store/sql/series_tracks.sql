-- Of which tracks are these series? One row per series.
-- Parameters: series_ids (list)
-- Columns: series_id; workload_id, configuration_id, device_id: the track
SELECT
    s.id AS series_id,
    s.workload_id,
    s.configuration_id,
    s.device_id
FROM series AS s
WHERE s.id IN :series_ids
ORDER BY s.id
