-- Which runs follow each other in this track? One row per active run that waits for no rank, by the order of versions;
-- those of a version as they came in (by number).
-- Parameters: workload_id, configuration_id, device_id; all_runs (1: yes), ids (a JSON object whose keys are the runs,
--   read when all_runs = 0)
-- Columns: run_id; version_id, version: its label; pinned: whether it is; ranks: that came; started_at_ns: NULL where
--   nobody knows; recording_id: of how it was recorded, NULL: nothing says it; arrived_ns: when its last rank came in,
--   NULL: before this was kept
SELECT
    r.id AS run_id,
    v.id AS version_id,
    v.label AS version,
    v.pinned,
    (
        SELECT COUNT(*) FROM capture AS c
        WHERE c.run_id = r.id
    ) AS ranks,
    r.started_at_ns,
    r.recording_id,
    r.last_rank_at_ns AS arrived_ns
FROM run AS r
INNER JOIN version AS v ON r.version_id = v.id
WHERE
    r.workload_id = :workload_id
    AND r.configuration_id = :configuration_id
    AND r.device_id = :device_id
    AND r.state = 'active'
    AND r.ranks_awaited IS NULL
    AND (:all_runs = 1 OR r.id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e))
ORDER BY v.ordinal, v.id, r.id
