-- What do the captures of the runs of this identity say of their job? One row per capture, those of deleted runs and of
-- other jobs left out.
-- Parameters: workload_id, configuration_id, version_id, device_id; job_id (NULL: not known)
-- Columns: run_id, rank; world_size, ranks_expected: of the run, NULL: unknown; host, device_ordinal, settings (JSON);
--   started_at_ns, ended_at_ns: UTC, NULL: unknown; path: of one of its files, NULL: none
SELECT
    c.run_id,
    c.rank,
    r.world_size,
    r.ranks_expected,
    c.host,
    c.device_ordinal,
    c.settings,
    c.started_at_ns,
    c.ended_at_ns,
    (
        SELECT MIN(s.path)
        FROM source AS s
        WHERE s.run_id = c.run_id AND s.rank = c.rank
    ) AS path
FROM capture AS c
INNER JOIN run AS r ON c.run_id = r.id
WHERE
    r.workload_id = :workload_id
    AND r.configuration_id = :configuration_id
    AND r.version_id = :version_id
    AND r.device_id = :device_id
    AND r.state <> 'deleted'
    AND NOT EXISTS (
        SELECT 1
        FROM run_fact AS f
        WHERE f.run_id = r.id AND f.kind = 'fact' AND f.key = 'job_id' AND f.value <> CAST(:job_id AS TEXT)
    )
ORDER BY c.run_id, c.rank
