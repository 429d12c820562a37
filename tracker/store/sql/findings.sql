-- Which changes were found? One row per finding that is not withdrawn.
-- Parameters: all_findings (1: yes), finding_ids (list, read when all_findings = 0: only these);
--   workload (name, NULL = all); workload_id, configuration_id, device_id (a track; NULL = all)
-- Columns: finding_id, incident_id; workload, configuration: its values; vendor, device: model; workload_id,
--   configuration_id, device_id; series_id, kind, metric, name, input_shapes, part, step_kind: of the series;
--   direction; change: how it was found (level, presence, gradual, late, machine); base_state: as the judgement says,
--   without the words of users; version, version_id, ordinal: that it is dated to; decided_version_id: whose runs
--   decided it; ended_version, ended_version_id, ended_by_version_id: that in which it was over, and whose runs decided
--   that, NULL: neither; excused: 1 where users said expect or invalid, and did not take it back; size (a log); q,
--   contribution, baseline_value, candidate_value, baseline_calls, candidate_calls, baseline_runs, candidate_runs: what
--   decided; is_leaf: an operator; step_before_ns, step_after_ns, operators_ns, new_ns, gone_ns, machine_ns,
--   other_operators_ns, earlier_ns, beside_ns, incident_kind: of the incident; shared_factor: of the version that
--   decided it
SELECT
    f.id AS finding_id,
    i.id AS incident_id,
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
    s.step_kind,
    f.direction,
    f.how AS change,
    f.state AS base_state,
    v.label AS version,
    f.first_version_id AS version_id,
    v.ordinal,
    f.decided_version_id,
    e.label AS ended_version,
    f.ended_version_id,
    f.ended_by_version_id,
    CASE
        WHEN EXISTS (
            SELECT 1
            FROM finding_action AS a
            WHERE
                a.series_id = f.series_id
                AND a.direction = f.direction
                AND a.how = f.how
                AND a.first_version_id = f.first_version_id
                AND a.action IN ('expect', 'invalid')
                AND NOT EXISTS (
                    SELECT 1
                    FROM finding_action AS u
                    WHERE u.undoes_id = a.id
                )
        ) THEN 1
        ELSE 0
    END AS excused,
    f.size,
    f.q,
    f.contribution,
    f.value_before AS baseline_value,
    f.value_after AS candidate_value,
    f.calls_before AS baseline_calls,
    f.calls_after AS candidate_calls,
    f.reference_runs AS baseline_runs,
    f.new_runs AS candidate_runs,
    f.is_leaf,
    i.before_ns AS step_before_ns,
    i.after_ns AS step_after_ns,
    i.operators_ns,
    i.new_ns,
    i.gone_ns,
    i.machine_ns,
    i.other_operators_ns,
    i.earlier_ns,
    i.beside_ns,
    i.step_kind AS incident_kind,
    j.shared_factor
FROM finding AS f
INNER JOIN workload AS w ON f.workload_id = w.id
INNER JOIN configuration AS g ON f.configuration_id = g.id
INNER JOIN device AS d ON f.device_id = d.id
INNER JOIN series AS s ON f.series_id = s.id
INNER JOIN version AS v ON f.first_version_id = v.id
INNER JOIN incident AS i
    ON
        f.workload_id = i.workload_id
        AND f.configuration_id = i.configuration_id
        AND f.device_id = i.device_id
        AND f.first_version_id = i.first_version_id
LEFT JOIN version AS e ON f.ended_version_id = e.id
LEFT JOIN judged_version AS j
    ON
        f.workload_id = j.workload_id
        AND f.configuration_id = j.configuration_id
        AND f.device_id = j.device_id
        AND f.decided_version_id = j.version_id
WHERE
    f.state <> 'withdrawn'
    AND (:all_findings = 1 OR f.id IN :finding_ids)
    AND (CAST(:workload AS TEXT) IS NULL OR w.name = :workload)
    AND (CAST(:workload_id AS BIGINT) IS NULL OR f.workload_id = :workload_id)
    AND (CAST(:configuration_id AS BIGINT) IS NULL OR f.configuration_id = :configuration_id)
    AND (CAST(:device_id AS BIGINT) IS NULL OR f.device_id = :device_id)
ORDER BY w.name, g.title, d.vendor, d.model, v.ordinal, f.direction, f.id
