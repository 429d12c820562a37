-- Which of these runs are of this identity? One row per run, deleted ones and those of other jobs left out.
-- Parameters: run_ids (list); workload_id, configuration_id, version_id, device_id; job_id (NULL: not known)
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
    AND NOT EXISTS (
        SELECT 1
        FROM run_fact AS f
        WHERE f.run_id = r.id AND f.kind = 'fact' AND f.key = 'job_id' AND f.value <> CAST(:job_id AS TEXT)
    )
ORDER BY r.id
