-- Which of these runs are of this identity? One row per run, deleted ones left out.
-- Parameters: run_ids (list); workload_id, configuration_id, version_id, device_id
-- Columns: id; world_size, ranks_expected (NULL: unknown)
SELECT
    r.id,
    r.world_size,
    r.ranks_expected
FROM run AS r
WHERE
    r.id IN :run_ids
    AND r.workload_id = :workload_id
    AND r.configuration_id = :configuration_id
    AND r.version_id = :version_id
    AND r.device_id = :device_id
    AND r.state <> 'deleted'
ORDER BY r.id
