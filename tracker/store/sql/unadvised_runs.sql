-- Which active runs of the same tracks have details, wait for no rank, and have no advice by the rules of today?
-- Parameters: run_ids (list); rule_version
-- Columns: run_id
SELECT DISTINCT r.id AS run_id
FROM run AS o
INNER JOIN run AS r
    ON
        o.workload_id = r.workload_id
        AND o.configuration_id = r.configuration_id
        AND o.device_id = r.device_id
LEFT JOIN advice AS a ON r.id = a.run_id
WHERE
    o.id IN :run_ids
    AND r.state = 'active'
    AND r.ranks_awaited IS NULL
    AND (a.rule_version IS NULL OR a.rule_version <> :rule_version)
    AND r.id NOT IN (
        SELECT c.run_id
        FROM capture AS c
        WHERE c.pruned_at_ns IS NOT NULL
    )
ORDER BY r.id
