-- What happened to the findings of this line? One row per transition, those of a finding in order.
-- Parameters: workload_id, configuration_id, device_id
-- Columns: finding_id; kind; run_id: of the run that made it, NULL: none did
SELECT
    e.finding_id,
    e.kind,
    e.run_id
FROM finding AS f
INNER JOIN finding_event AS e ON f.id = e.finding_id
WHERE
    f.workload_id = :workload_id
    AND f.configuration_id = :configuration_id
    AND f.device_id = :device_id
ORDER BY e.finding_id, e.position
