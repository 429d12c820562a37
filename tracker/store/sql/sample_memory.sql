-- What did the ops of a run allocate? One row per rank, step, op and component.
-- Parameters: run_id
-- Columns: rank, step, op_key_id; calls: allocations; bytes: allocated
SELECT
    d.rank,
    d.step,
    d.op_key_id,
    d.calls,
    d.bytes
FROM memory AS d
WHERE d.run_id = :run_id
ORDER BY d.rank, d.step, d.op_key_id, d.component_id
