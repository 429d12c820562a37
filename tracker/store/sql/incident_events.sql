-- What happened to the findings of incidents that somebody may want to hear of? One row per transition, in order.
-- Parameters: all_findings (1: yes), finding_ids (list, read when all_findings = 0: only these)
-- Columns: finding_id, kind; run_id, version: of the run that made it, NULL: none did
SELECT
    e.finding_id,
    e.kind,
    e.run_id,
    v.label AS version
FROM finding_event AS e
INNER JOIN finding AS f ON e.finding_id = f.id
LEFT JOIN run AS r ON e.run_id = r.id
LEFT JOIN version AS v ON r.version_id = v.id
WHERE
    f.incident_id IS NOT NULL
    AND (:all_findings = 1 OR f.id IN :finding_ids)
    AND e.kind IN ('confirmed', 'reopened', 'worsened', 'recovered', 'vanished', 'returned')
ORDER BY e.finding_id, e.position
