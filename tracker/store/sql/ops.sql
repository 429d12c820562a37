-- Which ops ran? One row per grain, op and call stack.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0); by_stage, by_rank, by_step (1: keep them apart)
-- Columns: run_id, stage (-1: none, or not asked for), rank, step (meaningless unless asked for);
--   op_key_id: see op_keys.sql; call_stack_id: see call_stacks.sql, NULL where none was recorded; calls; host_total_ns,
--   host_self_ns: host time, with and without the ops inside; device_total_ns, device_self_ns: device time launched
--   anywhere below the op, and by itself; min_ns, max_ns, sum_squares_ns2: of one call; host_min_ns,
--   host_max_ns: host time of one call; kernel_count: device events that it launched itself. A sum is NULL where it is
--   not known of every row
SELECT
    d.run_id,
    CASE WHEN :by_stage = 1 THEN COALESCE(c.stage, -1) ELSE -1 END AS stage,
    CASE WHEN :by_rank = 1 THEN d.rank ELSE -1 END AS rank,
    CASE WHEN :by_step = 1 THEN d.step ELSE -1 END AS step,
    d.op_key_id,
    d.call_stack_id,
    CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
    CASE WHEN COUNT(d.host_total_ns) = COUNT(*) THEN CAST(SUM(d.host_total_ns) AS BIGINT) END AS host_total_ns,
    CASE WHEN COUNT(d.host_self_ns) = COUNT(*) THEN CAST(SUM(d.host_self_ns) AS BIGINT) END AS host_self_ns,
    CASE WHEN COUNT(d.device_total_ns) = COUNT(*) THEN CAST(SUM(d.device_total_ns) AS BIGINT) END AS device_total_ns,
    CASE WHEN COUNT(d.device_self_ns) = COUNT(*) THEN CAST(SUM(d.device_self_ns) AS BIGINT) END AS device_self_ns,
    MIN(d.min_ns) AS min_ns,
    MAX(d.max_ns) AS max_ns,
    MIN(d.host_min_ns) AS host_min_ns,
    MAX(d.host_max_ns) AS host_max_ns,
    CASE WHEN COUNT(d.sum_squares_ns2) = COUNT(*) THEN SUM(d.sum_squares_ns2) END AS sum_squares_ns2,
    CASE WHEN COUNT(d.kernel_count) = COUNT(*) THEN CAST(SUM(d.kernel_count) AS BIGINT) END AS kernel_count
FROM op AS d
INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
WHERE
    d.run_id IN :run_ids
    AND (:all_ranks = 1 OR d.rank IN :ranks)
    AND (:in_steps = 0 OR d.step >= 0)
    AND (:all_steps = 1 OR d.step IN :steps)
GROUP BY 1, 2, 3, 4, 5, 6
