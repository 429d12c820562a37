-- Which findings of regressions are there, and how do they stand? One row per finding.
-- Parameters: none
-- Columns: finding_id, workload, state, candidate_runs: the runs that show it, NULL: none
SELECT
    f.id AS finding_id,
    w.name AS workload,
    f.state,
    f.candidate_runs
FROM finding AS f
INNER JOIN workload AS w ON f.workload_id = w.id
WHERE f.direction = 'regression'
ORDER BY f.id
