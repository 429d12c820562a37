-- How did the versions of this track come out as a whole? One row per version that was judged.
-- Parameters: workload_id, configuration_id, device_id
-- Columns: version_id, version: its label; step_verdict (NULL: no step), step_before_ns, step_after_ns, shared_factor
--   (a log), net, peak: as in the table judged_version; rests_on: what it was judged from; runs, base_runs: numbers
SELECT
    j.version_id,
    v.label AS version,
    j.step_verdict,
    j.step_before_ns,
    j.step_after_ns,
    j.shared_factor,
    j.net,
    j.peak,
    j.rests_on,
    j.runs,
    j.base_runs
FROM judged_version AS j
INNER JOIN version AS v ON j.version_id = v.id
WHERE
    j.workload_id = :workload_id
    AND j.configuration_id = :configuration_id
    AND j.device_id = :device_id
ORDER BY v.ordinal, v.id
