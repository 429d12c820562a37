-- What became of suspicions that one run raised, when later runs decided? One row per finding.
-- Parameters: series_ids (list)
-- Columns: series_id; version_id: of the run that raised it; direction, change; state; is_confirmed: it belongs to an
--   incident
SELECT
    f.series_id,
    r.version_id,
    f.direction,
    f.change,
    CASE WHEN f.incident_id IS NULL THEN 0 ELSE 1 END AS is_confirmed,
    f.state
FROM finding AS f
INNER JOIN run AS r ON f.first_run_id = r.id
WHERE
    f.series_id IN :series_ids
    AND f.change IN ('level', 'presence')
    AND (f.incident_id IS NOT NULL OR f.state = 'normal')
ORDER BY f.series_id, r.version_id, f.id
