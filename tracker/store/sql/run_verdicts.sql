-- How were the whole-run numbers of a workload judged? One row per run-level series and version that was judged.
-- Parameters: workload (name)
-- Columns: series_id, version_id; configuration_id, device_id, metric, part: of the series; version: its label;
--   verdict: what later runs made of it where they did, none of other work; raw_change, reason: see the table verdict
SELECT
    d.series_id,
    d.version_id,
    s.configuration_id,
    s.device_id,
    s.metric,
    s.part,
    v.label AS version,
    COALESCE(d.decided, d.verdict) AS verdict,
    d.change AS raw_change,
    d.reason
FROM workload AS w
-- in this order: rows lie together by version, and a track has few of those
CROSS JOIN series AS s
CROSS JOIN judged_version AS j
CROSS JOIN verdict AS d
CROSS JOIN version AS v
WHERE
    w.name = :workload
    AND w.id = s.workload_id
    AND s.kind = 'run'
    -- those of the steps by which the newest version of the track was judged stand behind those of all steps
    AND s.step_kind IN ('', COALESCE(
        (
            SELECT o.step_kind
            FROM judged_version AS o
            INNER JOIN version AS n ON o.version_id = n.id
            WHERE
                o.workload_id = s.workload_id
                AND o.configuration_id = s.configuration_id
                AND o.device_id = s.device_id
            ORDER BY n.ordinal DESC, n.id DESC
            LIMIT 1
        ), ''
    ))
    AND s.workload_id = j.workload_id
    AND s.configuration_id = j.configuration_id
    AND s.device_id = j.device_id
    AND j.version_id = d.version_id
    AND s.id = d.series_id
    AND d.reason <> 'OTHER_WORK'
    AND d.version_id = v.id
ORDER BY s.step_kind, d.series_id, d.version_id
