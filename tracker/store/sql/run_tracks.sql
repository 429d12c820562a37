-- To which track do these runs belong, and are their samples up to date? One row per run, whatever its state.
-- Parameters: run_ids (list)
-- Columns: run_id; workload_id, configuration_id, device_id: its track; sample_rules: that its samples were made by,
--   NULL: none; pruned_at_ns: when details of a rank were dropped, NULL: never; started_at_ns: its first capture (UTC,
--   NULL: unknown); content: what its captures say of how it was recorded (JSON), NULL where nothing says it
SELECT
    r.id AS run_id,
    r.workload_id,
    r.configuration_id,
    r.device_id,
    r.sample_rules,
    MAX(c.pruned_at_ns) AS pruned_at_ns,
    MIN(c.started_at_ns) AS started_at_ns,
    k.content
FROM run AS r
INNER JOIN capture AS c ON r.id = c.run_id
LEFT JOIN recording AS k ON r.recording_id = k.id
WHERE r.id IN :run_ids
GROUP BY r.id, r.workload_id, r.configuration_id, r.device_id, r.sample_rules, k.content
ORDER BY r.id
