-- Which findings does this line have? One row per finding.
-- Parameters: workload_id, configuration_id, device_id
-- Columns: finding_id; kind, metric, name, input_shapes, part: of the series; direction, change, state; first_run_id,
--   version, version_id: that began it; ratio, contribution, baseline_calls, candidate_calls, candidate_runs: what
--   decided; as in findings.sql
SELECT
    f.id AS finding_id,
    s.kind,
    s.metric,
    s.name,
    s.input_shapes,
    s.part,
    f.direction,
    f.change,
    f.state,
    f.first_run_id,
    v.label AS version,
    f.first_version_id AS version_id,
    f.ratio,
    f.contribution,
    f.baseline_calls,
    f.candidate_calls,
    f.candidate_runs
FROM finding AS f
INNER JOIN series AS s ON f.series_id = s.id
INNER JOIN version AS v ON f.first_version_id = v.id
WHERE
    f.workload_id = :workload_id
    AND f.configuration_id = :configuration_id
    AND f.device_id = :device_id
ORDER BY v.ordinal, f.direction, f.id
