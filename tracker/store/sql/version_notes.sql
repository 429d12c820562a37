-- What was said of the versions of this workload? One row per version.
-- Parameters: workload_id
-- Columns: version_id; version: its label; commit_id, note: NULL where nobody said
SELECT
    v.id AS version_id,
    v.label AS version,
    v.commit_id,
    v.note
FROM version AS v
WHERE v.workload_id = :workload_id
ORDER BY v.ordinal, v.id
