-- Which limits did users set that hold in this track? One row per limit.
-- Parameters: workload_id, configuration_id, device_id
-- Columns: configuration_id, device_id: 0 where it holds in all; kind, pattern: of which series, empty: all; name,
--   threshold: the limit; who, when_ns, reason
SELECT
    t.configuration_id,
    t.device_id,
    t.kind,
    t.pattern,
    t.name,
    t.value AS threshold,
    t.who,
    t.when_ns,
    t.reason
FROM threshold AS t
WHERE
    t.workload_id = :workload_id
    AND t.configuration_id IN (0, :configuration_id)
    AND t.device_id IN (0, :device_id)
ORDER BY t.name, t.kind, t.pattern, t.configuration_id, t.device_id
