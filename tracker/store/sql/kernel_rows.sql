-- Which kernels ran, launched by which ops? One row per run, rank, step, kernel, category and op: `kernels.sql` before
-- anything is summed up, by run.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0)
-- Columns: run_id, rank, step, kernel_key_id, op_key_id, category_id, calls, total_ns, min_ns, max_ns,
--   sum_squares_ns2, wait_ns, bytes, block_num: as in kernels.sql
SELECT
    d.run_id,
    d.rank,
    d.step,
    d.kernel_key_id,
    d.op_key_id,
    d.category_id,
    d.calls,
    d.total_ns,
    d.min_ns,
    d.max_ns,
    d.sum_squares_ns2,
    d.wait_ns,
    d.bytes,
    d.block_num
FROM kernel AS d
WHERE
    d.run_id IN :run_ids
    AND (:all_ranks = 1 OR d.rank IN :ranks)
    AND (:in_steps = 0 OR d.step >= 0)
    AND (:all_steps = 1 OR d.step IN :steps)
