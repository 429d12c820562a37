-- Which runs with all their details are old enough to lose them? One row per run, the oldest first.
-- Parameters: workload (NULL = all); before_ns: UTC, only runs that started before; keep_versions: newest versions of a
--   workload whose runs stay; run_id: only this one (NULL = all)
-- Columns: run_id; workload, version, started_at_ns
WITH used AS (
    SELECT
        v.id,
        v.label,
        v.pinned,
        v.workload_id,
        ROW_NUMBER() OVER (PARTITION BY v.workload_id ORDER BY v.ordinal DESC, v.id DESC) AS place
    FROM version AS v
    WHERE
        EXISTS (
            SELECT 1
            FROM run AS r
            WHERE r.version_id = v.id AND r.state = 'active'
        )
)

SELECT
    r.id AS run_id,
    w.name AS workload,
    v.label AS version,
    r.started_at_ns
FROM run AS r
INNER JOIN workload AS w ON r.workload_id = w.id
INNER JOIN version AS v ON r.version_id = v.id
LEFT JOIN used AS u ON v.id = u.id
WHERE
    r.started_at_ns < :before_ns
    AND (CAST(:workload AS TEXT) IS NULL OR w.name = :workload)
    AND (CAST(:run_id AS BIGINT) IS NULL OR r.id = :run_id)
    AND NOT v.pinned
    AND (u.place IS NULL OR u.place > :keep_versions)
    AND EXISTS (
        SELECT 1
        FROM capture AS c
        WHERE c.run_id = r.id AND c.pruned_at_ns IS NULL
    )
ORDER BY r.started_at_ns, r.id
