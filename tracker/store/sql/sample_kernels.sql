-- Which kernels did the ranks of a run launch? One row per rank, step, kernel, launching op and category.
-- Parameters: run_id
-- Columns: rank, step, kernel_key_id, category; calls; total_ns: device time
SELECT
    d.rank,
    d.step,
    d.kernel_key_id,
    g.text AS category,
    d.calls,
    d.total_ns
FROM kernel AS d
INNER JOIN detail_text AS g ON d.category_id = g.id
WHERE d.run_id = :run_id
ORDER BY d.rank, d.step, d.kernel_key_id, d.op_key_id, d.category_id
