-- What is this run filed under, and does it count? One row, or none for an unknown number.
-- Parameters: run_id
-- Columns: run_id, state, state_reason; workload_id, configuration_id, version_id, device_id; workload, version: their
-- names; commit_id, main_commits: of the version; experiment_id: that it is a run of, NULL: of none
SELECT
    r.id AS run_id,
    r.state,
    r.state_reason,
    r.workload_id,
    r.configuration_id,
    r.version_id,
    r.device_id,
    w.name AS workload,
    v.label AS version,
    v.commit_id,
    v.main_commits,
    r.experiment_id
FROM run AS r
INNER JOIN workload AS w ON r.workload_id = w.id
INNER JOIN version AS v ON r.version_id = v.id
WHERE r.id = :run_id
