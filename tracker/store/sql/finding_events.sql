-- What happened to these findings? One row per transition, in order.
-- Parameters: finding_ids (list)
-- Columns: finding_id, position; source, target: states; kind; who: a user, or rule; when_ns; run_id, version: of the
--   run that made it, NULL: none did; rule_version; reason; notifies: a message was due
SELECT
    e.finding_id,
    e.position,
    e.source,
    e.target,
    e.kind,
    e.who,
    e.when_ns,
    e.run_id,
    v.label AS version,
    e.rule_version,
    e.reason,
    e.notifies
FROM finding_event AS e
LEFT JOIN run AS r ON e.run_id = r.id
LEFT JOIN version AS v ON r.version_id = v.id
WHERE e.finding_id IN :finding_ids
ORDER BY e.finding_id, e.position
