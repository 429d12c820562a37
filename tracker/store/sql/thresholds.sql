-- Which limits did users set? One row per limit, by where it holds.
-- Parameters: workload (name, NULL = all)
-- Columns: threshold_id; workload; configuration: its values, NULL: all; vendor, device: the model, NULL: all; kind,
--   pattern: of which series, empty: all; name, threshold: the limit; who, when_ns, reason
SELECT
    t.id AS threshold_id,
    w.name AS workload,
    g.title AS configuration,
    d.vendor,
    d.model AS device,
    t.kind,
    t.pattern,
    t.name,
    t.value AS threshold,
    t.who,
    t.when_ns,
    t.reason
FROM threshold AS t
INNER JOIN workload AS w ON t.workload_id = w.id
LEFT JOIN configuration AS g ON t.configuration_id = g.id
LEFT JOIN device AS d ON t.device_id = d.id
WHERE CAST(:workload AS TEXT) IS NULL OR w.name = :workload
ORDER BY w.name, t.configuration_id, t.device_id, t.kind, t.pattern, t.name
