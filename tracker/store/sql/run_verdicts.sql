-- How were the whole-run numbers of a workload judged? One row per run-level series and version that was judged.
-- Parameters: workload (name)
-- Columns: series_id, version_id; configuration_id, device_id, metric, part: of the series; version: its label;
--   baseline_diff, baseline_verdict, reason: against the accepted runs before that version, NULL: not judged
SELECT
    d.series_id,
    d.version_id,
    s.configuration_id,
    s.device_id,
    s.metric,
    s.part,
    v.label AS version,
    d.baseline_diff,
    d.baseline_verdict,
    d.reason
FROM series AS s
INNER JOIN workload AS w ON s.workload_id = w.id
INNER JOIN diff_history AS d ON s.id = d.series_id
INNER JOIN version AS v ON d.version_id = v.id
WHERE
    w.name = :workload
    AND s.kind = 'run'
ORDER BY d.series_id, d.version_id
