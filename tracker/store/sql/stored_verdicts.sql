-- What was said of the series of a version? One row per verdict.
-- Parameters: workload_id, configuration_id, device_id, version_id; kind (of series, NULL = all); verdict (NULL = all)
-- Columns: kind, metric, name, input_shapes, part, step_kind: of the series; verdict: what later runs made of it, else
--   what its own runs did, NULL where settings forbid one; reason; change, judged_change (ratios: with and without the
--   common-mode shift), q, contribution (share of the step), detectable (ratio); level_version_id: with which the level
--   began that it was judged against; series_id
SELECT
    s.kind,
    s.metric,
    s.name,
    s.input_shapes,
    s.part,
    s.step_kind,
    CASE
        WHEN d.reason NOT IN ('SETTINGS', 'INCOMPLETE', 'OTHER_WORK') THEN COALESCE(d.decided, d.verdict)
    END AS verdict,
    d.reason,
    d.change,
    d.judged_change,
    d.q,
    d.contribution,
    d.detectable,
    d.level_version_id,
    s.id AS series_id
FROM verdict AS d
INNER JOIN series AS s ON d.series_id = s.id
WHERE
    d.version_id = :version_id
    AND s.workload_id = :workload_id
    AND s.configuration_id = :configuration_id
    AND s.device_id = :device_id
    AND (CAST(:kind AS TEXT) IS NULL OR s.kind = :kind)
    AND (CAST(:verdict AS TEXT) IS NULL OR COALESCE(d.decided, d.verdict) = :verdict)
ORDER BY s.id
