-- Which files are in runs of this identity that ran at this time, of jobs of unknown size? One row per file.
-- Parameters: workload_id, configuration_id, version_id, device_id; start_ns, end_ns (of the window, UTC);
--   job_id (NULL: not known)
-- Columns: run_id, rank, path
SELECT
    s.run_id,
    s.rank,
    s.path
FROM source AS s
INNER JOIN run AS r ON s.run_id = r.id
WHERE
    r.workload_id = :workload_id
    AND r.configuration_id = :configuration_id
    AND r.version_id = :version_id
    AND r.device_id = :device_id
    AND r.state <> 'deleted'
    AND r.world_size IS NULL
    AND r.started_at_ns <= :end_ns
    AND r.ended_at_ns >= :start_ns
    AND NOT EXISTS (
        SELECT 1
        FROM run_fact AS f
        WHERE f.run_id = r.id AND f.kind = 'fact' AND f.key = 'job_id' AND f.value <> CAST(:job_id AS TEXT)
    )
ORDER BY s.run_id, s.rank, s.path
