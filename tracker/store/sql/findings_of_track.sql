-- Which changes were found in a track, whatever became of them? One row per finding that is not withdrawn.
-- Parameters: workload_id, configuration_id, device_id
-- Columns: incident_id; series_id, kind, metric, name, input_shapes, part: of the series; direction; version: its
--   label; version_id: that it is dated to; decided_version_id: whose runs decided it; ended_version_id: in which it
--   was over, NULL: it is open; contribution (share of the step); value_before; reference_runs: numbers; is_leaf: an
--   operator; excused: 1 where users said expect or invalid
SELECT
    i.id AS incident_id,
    f.series_id,
    s.kind,
    s.metric,
    s.name,
    s.input_shapes,
    s.part,
    f.direction,
    v.label AS version,
    f.first_version_id AS version_id,
    f.decided_version_id,
    f.ended_version_id,
    f.contribution,
    f.value_before,
    f.reference_runs,
    f.is_leaf,
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
        ) THEN 1
        ELSE 0
    END AS excused
FROM finding AS f
INNER JOIN series AS s ON f.series_id = s.id
INNER JOIN version AS v ON f.first_version_id = v.id
LEFT JOIN incident AS i
    ON
        f.workload_id = i.workload_id
        AND f.configuration_id = i.configuration_id
        AND f.device_id = i.device_id
        AND f.first_version_id = i.first_version_id
WHERE
    f.workload_id = :workload_id
    AND f.configuration_id = :configuration_id
    AND f.device_id = :device_id
    AND f.state <> 'withdrawn'
ORDER BY f.id
