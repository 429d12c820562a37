-- Which versions of this line were judged, and from what? One row per version.
-- Parameters: workload_id, configuration_id, device_id
-- Columns: version_id; fingerprint: of what it rests on; rule_version; previous_version_id, pinned_version_id (NULL:
--   there was none); judged_runs, baseline_runs: numbers of its runs, and of those that its step was judged against;
--   centre: what all operators share, as a log, NULL: nothing to compare with
SELECT
    j.version_id,
    j.fingerprint,
    j.rule_version,
    j.previous_version_id,
    j.judged_runs,
    j.baseline_runs,
    j.pinned_version_id,
    j.centre
FROM judged AS j
WHERE
    j.workload_id = :workload_id
    AND j.configuration_id = :configuration_id
    AND j.device_id = :device_id
ORDER BY j.version_id
