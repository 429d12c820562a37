-- Which ops ran? One row per run, rank, step and op: `ops.sql` before anything is summed up, by run.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0)
-- Columns: run_id, rank, step, op_key_id, call_stack_id, calls, host_total_ns, host_self_ns, device_total_ns,
--   device_self_ns, min_ns, max_ns, host_min_ns, host_max_ns, sum_squares_ns2, kernel_count: as in ops.sql
SELECT
    d.run_id,
    d.rank,
    d.step,
    d.op_key_id,
    d.call_stack_id,
    d.calls,
    d.host_total_ns,
    d.host_self_ns,
    d.device_total_ns,
    d.device_self_ns,
    d.min_ns,
    d.max_ns,
    d.host_min_ns,
    d.host_max_ns,
    d.sum_squares_ns2,
    d.kernel_count
FROM op AS d
WHERE
    d.run_id IN :run_ids
    AND (:all_ranks = 1 OR d.rank IN :ranks)
    AND (:in_steps = 0 OR d.step >= 0)
    AND (:all_steps = 1 OR d.step IN :steps)
