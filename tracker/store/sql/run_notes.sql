-- What was said of the active runs of this workload? One row per version and note, in the order of versions.
-- Parameters: workload_id
-- Columns: version_id; note
SELECT
    r.version_id,
    r.note
FROM run AS r
INNER JOIN version AS v ON r.version_id = v.id
WHERE v.workload_id = :workload_id AND r.state = 'active' AND r.note IS NOT NULL
GROUP BY r.version_id, r.note, v.ordinal
ORDER BY v.ordinal, r.version_id, MIN(r.id)
