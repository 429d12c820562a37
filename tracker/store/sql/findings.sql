-- Which findings are there? One row per finding.
-- Parameters: all_findings (1: yes), finding_ids (list, read when all_findings = 0: only these);
--   workload (name, NULL = all)
-- Columns: finding_id, incident_id (NULL: not confirmed); workload, configuration: its values; vendor, device: model;
--   workload_id, configuration_id, device_id; series_id, kind, metric, name, input_shapes, part: of the series;
--   direction, change, state, number, reopened; first_run_id, version, version_id, ordinal: that began it;
--   good_version: the last one before that was good; last_run_id; effect: DIFF of that run;
--   ratio, low, high, p, q, contribution, detectable, effect_passes, q_passes, contribution_passes, verdict, reason,
--   baseline_value, candidate_value, baseline_calls, candidate_calls, baseline_runs, candidate_runs, step_runs,
--   rule_version: what decided; until_ns, until_version: end of a mute
SELECT
    f.id AS finding_id,
    f.incident_id,
    w.name AS workload,
    g.title AS configuration,
    d.vendor,
    d.model AS device,
    f.workload_id,
    f.configuration_id,
    f.device_id,
    f.series_id,
    s.kind,
    s.metric,
    s.name,
    s.input_shapes,
    s.part,
    f.direction,
    f.change,
    f.state,
    f.number,
    f.reopened,
    f.first_run_id,
    v.label AS version,
    f.first_version_id AS version_id,
    v.ordinal,
    b.label AS good_version,
    f.last_run_id,
    f.effect,
    f.ratio,
    f.low,
    f.high,
    f.p,
    f.q,
    f.contribution,
    f.detectable,
    f.effect_passes,
    f.q_passes,
    f.contribution_passes,
    f.verdict,
    f.reason,
    f.baseline_value,
    f.candidate_value,
    f.baseline_calls,
    f.candidate_calls,
    f.baseline_runs,
    f.candidate_runs,
    f.step_runs,
    f.rule_version,
    f.until_ns,
    f.until_version
FROM finding AS f
INNER JOIN workload AS w ON f.workload_id = w.id
INNER JOIN configuration AS g ON f.configuration_id = g.id
INNER JOIN device AS d ON f.device_id = d.id
INNER JOIN series AS s ON f.series_id = s.id
INNER JOIN version AS v ON f.first_version_id = v.id
LEFT JOIN version AS b ON f.good_version_id = b.id
WHERE
    (:all_findings = 1 OR f.id IN :finding_ids)
    AND (CAST(:workload AS TEXT) IS NULL OR w.name = :workload)
ORDER BY w.name, g.title, d.vendor, d.model, v.ordinal, f.direction, f.id
