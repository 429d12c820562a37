-- Which version of a track was judged first of those behind a version?
-- Parameters: workload_id, configuration_id, device_id; version_id
-- Columns: version: its label; no row where none was
SELECT v.label AS version
FROM judged_version AS j
INNER JOIN version AS v ON j.version_id = v.id
INNER JOIN version AS n ON n.id = :version_id
WHERE
    j.workload_id = :workload_id
    AND j.configuration_id = :configuration_id
    AND j.device_id = :device_id
    AND v.ordinal > n.ordinal
ORDER BY v.ordinal, v.id
LIMIT 1
