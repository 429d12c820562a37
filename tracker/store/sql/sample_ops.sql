-- Which ops did the ranks of a run call? One row per rank, step and op.
-- Parameters: run_id
-- Columns: rank, step, op_key_id; calls; host_self_ns, device_self_ns: time by itself
SELECT
    d.rank,
    d.step,
    d.op_key_id,
    d.calls,
    d.host_self_ns,
    d.device_self_ns
FROM op AS d
WHERE d.run_id = :run_id
ORDER BY d.rank, d.step, d.op_key_id
