-- How long did each rank spend in each kernel? One row per rank, kernel, category and launching op.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0)
-- Columns: rank; kernel_key_id: see kernel_keys.sql; op_key_id: see op_keys.sql; category_id: see detail_texts.sql;
--   calls; total_ns; bytes: moved by copies. A sum leaves out what is not known
SELECT
    d.rank,
    d.kernel_key_id,
    d.op_key_id,
    d.category_id,
    CAST(SUM(d.calls) AS BIGINT) AS calls,
    CAST(SUM(d.total_ns) AS BIGINT) AS total_ns,
    CAST(SUM(d.bytes) AS BIGINT) AS bytes
FROM kernel AS d
WHERE
    d.run_id IN :run_ids
    AND (:all_ranks = 1 OR d.rank IN :ranks)
    AND (:in_steps = 0 OR d.step >= 0)
    AND (:all_steps = 1 OR d.step IN :steps)
GROUP BY d.rank, d.kernel_key_id, d.op_key_id, d.category_id
ORDER BY d.rank, d.kernel_key_id, d.op_key_id, d.category_id
