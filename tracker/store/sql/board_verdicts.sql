-- How was the step of each version judged? One row per track, version and way to measure it that has a verdict.
-- Parameters: workload (name, NULL = all)
-- Columns: workload_id, configuration_id, device_id: the track; version_id; name: step or e2e; part: how it was
--   measured; step_kind: of which steps, those by which the version was judged; verdict: what later runs made of it
--   where they did, none of other work; reason: of it
SELECT
    s.workload_id,
    s.configuration_id,
    s.device_id,
    d.version_id,
    s.name,
    s.part,
    s.step_kind,
    COALESCE(d.decided, d.verdict) AS verdict,
    d.reason
FROM series AS s
INNER JOIN workload AS w ON s.workload_id = w.id
-- in this order: rows lie together by version, and a track has few of those
CROSS JOIN judged_version AS j
CROSS JOIN verdict AS d
WHERE
    s.kind = 'run'
    AND s.metric IN ('duration_ns', 'e2e_ns')
    AND s.name IN ('step', 'e2e')
    AND s.workload_id = j.workload_id
    AND s.configuration_id = j.configuration_id
    AND s.device_id = j.device_id
    AND j.version_id = d.version_id
    AND s.id = d.series_id
    AND d.reason <> 'OTHER_WORK'
    AND s.step_kind = j.step_kind
    AND (CAST(:workload AS TEXT) IS NULL OR w.name = :workload)
ORDER BY s.workload_id, s.configuration_id, s.device_id, d.version_id, s.name, s.part DESC
