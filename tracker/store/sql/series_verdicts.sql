-- How were these series judged, version by version? One row per series and version of which something is to be said.
-- Parameters: series_ids (list)
-- Columns: series_id, version_id, level_version_id, verdict, decided, reason, raw_change, judged_change, q,
--   contribution: see the table verdict
SELECT
    d.series_id,
    d.version_id,
    d.level_version_id,
    d.verdict,
    d.decided,
    d.reason,
    d.change AS raw_change,
    d.judged_change,
    d.q,
    d.contribution
FROM series AS s
-- in this order: rows lie together by version, and a track has few of those
CROSS JOIN judged_version AS j
CROSS JOIN verdict AS d
WHERE
    s.id IN :series_ids
    AND s.workload_id = j.workload_id
    AND s.configuration_id = j.configuration_id
    AND s.device_id = j.device_id
    AND j.version_id = d.version_id
    AND s.id = d.series_id
ORDER BY d.series_id, d.version_id
