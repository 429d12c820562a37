-- Which run of each workload came in last? One row per workload that has active runs.
-- Parameters: none
-- Columns: workload; run_id; version; started_at_ns: UTC, NULL: unknown
SELECT
    w.name AS workload,
    r.id AS run_id,
    v.label AS version,
    r.started_at_ns
FROM run AS r
INNER JOIN workload AS w ON r.workload_id = w.id
INNER JOIN version AS v ON r.version_id = v.id
WHERE
    r.id IN (
        SELECT MAX(l.id)
        FROM run AS l
        WHERE l.state = 'active'
        GROUP BY l.workload_id
    )
ORDER BY w.name
