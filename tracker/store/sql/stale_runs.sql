-- Of which active runs of this track were the samples never made, or by other rules, and can be made? One row per run;
-- without those that wait for ranks, which have none yet.
-- Parameters: workload_id, configuration_id, device_id; rules: that samples are made by now
-- Columns: run_id
SELECT r.id AS run_id
FROM run AS r
WHERE
    r.workload_id = :workload_id
    AND r.configuration_id = :configuration_id
    AND r.device_id = :device_id
    AND r.state = 'active'
    AND r.ranks_awaited IS NULL
    AND COALESCE(r.sample_rules, -1) <> :rules
    AND NOT EXISTS (
        SELECT 1 FROM capture AS c
        WHERE c.run_id = r.id AND c.pruned_at_ns IS NOT NULL
    )
ORDER BY r.id
