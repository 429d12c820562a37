-- Under which labels are these runs filed? One row per run, whatever its state.
-- Parameters: run_ids (list)
-- Columns: run_id; workload; version
SELECT
    r.id AS run_id,
    w.name AS workload,
    v.label AS version
FROM run AS r
INNER JOIN workload AS w ON r.workload_id = w.id
INNER JOIN version AS v ON r.version_id = v.id
WHERE r.id IN :run_ids
ORDER BY r.id
