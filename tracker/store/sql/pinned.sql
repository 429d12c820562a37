-- Which versions are pinned as the baseline? One row per workload that has one.
-- Parameters: workload (name, NULL = all)
-- Columns: version, workload
SELECT
    v.label AS version,
    w.name AS workload
FROM version AS v
INNER JOIN workload AS w ON v.workload_id = w.id
WHERE
    v.pinned
    AND (CAST(:workload AS TEXT) IS NULL OR w.name = :workload)
ORDER BY w.name
