-- Where do the findings of incidents stand, and what ended them last? One row per finding.
-- Parameters: none
-- Columns: finding_id, version_id: that began it; series_id, direction, change, first_run_id: what names it; state;
--   ended_by, ended_run_id: kind and run of its last end, NULL: it never ended
SELECT
    f.id AS finding_id,
    f.first_version_id AS version_id,
    f.series_id,
    f.direction,
    f.change,
    f.first_run_id,
    f.state,
    e.kind AS ended_by,
    e.run_id AS ended_run_id
FROM finding AS f
LEFT JOIN finding_event AS e
    ON
        f.id = e.finding_id
        AND e.position = (
            SELECT MAX(n.position)
            FROM finding_event AS n
            WHERE n.finding_id = f.id AND n.kind IN ('recovered', 'vanished')
        )
WHERE f.incident_id IS NOT NULL
ORDER BY f.id
