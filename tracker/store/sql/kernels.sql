-- Which kernels ran, launched by which ops? One row per grain, kernel, category and op. Copies and memsets are among
-- them.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0); by_stage, by_rank, by_step (1: keep them apart)
-- Columns: run_id, stage (-1: none, or not asked for), rank, step (meaningless unless asked for);
--   kernel_key_id: see kernel_keys.sql; op_key_id: the launching op, see op_keys.sql; category_id: see
--   detail_texts.sql; calls; total_ns, min_ns, max_ns: device time, of all calls and of one; sum_squares_ns2: of the
--   calls; wait_ns: before the kernels; bytes: moved by copies; block_num: blocks that a call ran on, the most of all
--   calls. A sum is NULL where it is not known of every row
SELECT
    d.run_id,
    CASE WHEN :by_stage = 1 THEN COALESCE(c.stage, -1) ELSE -1 END AS stage,
    CASE WHEN :by_rank = 1 THEN d.rank ELSE -1 END AS rank,
    CASE WHEN :by_step = 1 THEN d.step ELSE -1 END AS step,
    d.kernel_key_id,
    d.op_key_id,
    d.category_id,
    CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
    CASE WHEN COUNT(d.total_ns) = COUNT(*) THEN CAST(SUM(d.total_ns) AS BIGINT) END AS total_ns,
    MIN(d.min_ns) AS min_ns,
    MAX(d.max_ns) AS max_ns,
    CASE WHEN COUNT(d.sum_squares_ns2) = COUNT(*) THEN SUM(d.sum_squares_ns2) END AS sum_squares_ns2,
    CASE WHEN COUNT(d.wait_ns) = COUNT(*) THEN CAST(SUM(d.wait_ns) AS BIGINT) END AS wait_ns,
    CASE WHEN COUNT(d.bytes) = COUNT(*) THEN CAST(SUM(d.bytes) AS BIGINT) END AS bytes,
    MAX(d.block_num) AS block_num
FROM kernel AS d
INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
WHERE
    d.run_id IN :run_ids
    AND (:all_ranks = 1 OR d.rank IN :ranks)
    AND (:in_steps = 0 OR d.step >= 0)
    AND (:all_steps = 1 OR d.step IN :steps)
GROUP BY 1, 2, 3, 4, 5, 6, 7
