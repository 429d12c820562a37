-- What changed of these series for certain, version by version? One row per series, version and number.
-- Parameters: series_ids (list)
-- Columns: series_id, version_id, what, value_before, value_after: see the table fact
SELECT
    d.series_id,
    d.version_id,
    d.what,
    d.value_before,
    d.value_after
FROM series AS s
-- in this order: rows lie together by version, and a track has few of those
CROSS JOIN judged_version AS j
CROSS JOIN fact AS d
WHERE
    s.id IN :series_ids
    AND s.workload_id = j.workload_id
    AND s.configuration_id = j.configuration_id
    AND s.device_id = j.device_id
    AND j.version_id = d.version_id
    AND s.id = d.series_id
ORDER BY d.series_id, d.version_id, d.what
