-- What does the judgement of each version of a line rest on? One row per active run, by the order of versions.
-- Parameters: workload_id, configuration_id, device_id
-- Columns: run_id, version_id; ranks: that came; recording_id: of how it was recorded, NULL: nothing says it;
--   started_at_ns: NULL where nobody knows
SELECT
    r.id AS run_id,
    r.version_id,
    (
        SELECT COUNT(*) FROM capture AS c
        WHERE c.run_id = r.id
    ) AS ranks,
    r.recording_id,
    r.started_at_ns
FROM run AS r
INNER JOIN version AS v ON r.version_id = v.id
WHERE
    r.workload_id = :workload_id
    AND r.configuration_id = :configuration_id
    AND r.device_id = :device_id
    AND r.state = 'active'
ORDER BY v.ordinal, v.id, r.id
