-- Which versions are there, in their order? One row per workload and label; none of experiments.
-- Parameters: workload (name, NULL = all)
-- Columns: workload, version, ordinal: its place; commit_id, pinned, note; runs: active ones that wait for no rank;
--   first_started_at_ns: of them, UTC ns, NULL: unknown
SELECT
    w.name AS workload,
    v.label AS version,
    v.ordinal,
    v.commit_id,
    v.pinned,
    v.note,
    COUNT(r.id) AS runs,
    MIN(r.started_at_ns) AS first_started_at_ns
FROM version AS v
INNER JOIN workload AS w ON v.workload_id = w.id
LEFT JOIN run AS r ON v.id = r.version_id AND r.state = 'active' AND r.ranks_awaited IS NULL
WHERE
    (CAST(:workload AS TEXT) IS NULL OR w.name = :workload)
    AND w.id NOT IN (
        SELECT x.workload_id
        FROM run AS x
        WHERE x.experiment_id IS NOT NULL
    )
GROUP BY w.name, v.label, v.ordinal, v.commit_id, v.pinned, v.note, v.id
ORDER BY w.name, v.ordinal, v.id
