-- Which branches are there, and when came their last run? One row per branch; none of experiments.
-- Parameters: none
-- Columns: workload_id; workload: its name, that of its main line with the branch; main_id: the workload of its main
--   line; last_started_ns: of its newest run, UTC, NULL: unknown
SELECT
    w.id AS workload_id,
    w.name AS workload,
    w.main_id,
    MAX(r.started_at_ns) AS last_started_ns
FROM workload AS w
LEFT JOIN run AS r ON w.id = r.workload_id
WHERE
    w.main_id IS NOT NULL
    AND w.id NOT IN (
        SELECT x.workload_id
        FROM run AS x
        WHERE x.experiment_id IS NOT NULL
    )
GROUP BY w.id, w.name, w.main_id
ORDER BY w.id
