-- What may have changed with a version, and more runs decide? One row per series of a track.
-- Parameters: workload_id, configuration_id, device_id, version_id
-- Columns: series_id, kind, metric, name, input_shapes, part: of the series; change: of its number, as a ratio;
--   contribution; level_version_id: that with which its level began
SELECT
    s.id AS series_id,
    s.kind,
    s.metric,
    s.name,
    s.input_shapes,
    s.part,
    d.change,
    d.contribution,
    d.level_version_id
FROM verdict AS d
INNER JOIN series AS s ON d.series_id = s.id
WHERE
    d.version_id = :version_id
    AND d.verdict = 'SUSPECT'
    AND d.decided IS NULL
    AND s.workload_id = :workload_id
    AND s.configuration_id = :configuration_id
    AND s.device_id = :device_id
ORDER BY s.id
