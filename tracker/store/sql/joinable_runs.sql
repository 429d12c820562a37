-- Which runs of this identity lack all of these ranks? One row per run, deleted ones and those of other jobs left out.
-- Parameters: workload_id, configuration_id, version_id, device_id; ranks (list of rank); job_id (NULL: not known)
-- Columns: id; world_size, ranks_expected (NULL: unknown); ranks: how many are in;
--   started_at_ns, ended_at_ns: window of its captures, UTC ns, NULL: unknown
SELECT
    r.id,
    r.world_size,
    r.ranks_expected,
    (
        SELECT COUNT(*)
        FROM capture AS held
        WHERE held.run_id = r.id
    ) AS ranks,
    r.started_at_ns,
    r.ended_at_ns
FROM run AS r
WHERE
    r.workload_id = :workload_id
    AND r.configuration_id = :configuration_id
    AND r.version_id = :version_id
    AND r.device_id = :device_id
    AND r.state <> 'deleted'
    AND NOT EXISTS (
        SELECT 1
        FROM capture AS c
        WHERE c.run_id = r.id AND c.rank IN :ranks
    )
    AND NOT EXISTS (
        SELECT 1
        FROM run_fact AS f
        WHERE f.run_id = r.id AND f.kind = 'fact' AND f.key = 'job_id' AND f.value <> CAST(:job_id AS TEXT)
    )
ORDER BY r.id
