-- Which ops ran? One row per grain and op (name, shapes, types, module, phase).
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0); by_stage, by_rank, by_step (1: keep them apart)
-- Columns: run_id, stage (NULL: none, or not asked for), rank, step (meaningless unless asked for);
--   name, input_shapes, input_types, module, phase; calls; host_total_ns, host_self_ns: host time, with and without the
--   ops inside; device_total_ns, device_self_ns: device time launched anywhere below the op, and by itself;
--   min_ns, max_ns, sum_squares_ns2: of one call; kernel_count: device events that it launched itself; call_stack: the
--   most frequent one, NULL where none was recorded
WITH picked AS (
    SELECT
        d.run_id,
        CASE WHEN :by_stage = 1 THEN COALESCE(c.stage, -1) ELSE -1 END AS stage,
        CASE WHEN :by_rank = 1 THEN d.rank ELSE -1 END AS rank,
        CASE WHEN :by_step = 1 THEN d.step ELSE -1 END AS step,
        d.op_key_id,
        d.call_stack_id,
        d.calls,
        d.host_total_ns,
        d.host_self_ns,
        d.device_total_ns,
        d.device_self_ns,
        d.min_ns,
        d.max_ns,
        d.sum_squares_ns2,
        d.kernel_count
    FROM op AS d
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND (:all_ranks = 1 OR d.rank IN :ranks)
        AND (:in_steps = 0 OR d.step >= 0)
        AND (:all_steps = 1 OR d.step IN :steps)
),

by_stack AS (
    SELECT
        p.run_id,
        p.stage,
        p.rank,
        p.step,
        p.op_key_id,
        p.call_stack_id,
        SUM(p.calls) AS calls,
        SUM(p.host_total_ns) AS host_total_ns,
        SUM(p.host_self_ns) AS host_self_ns,
        SUM(p.device_total_ns) AS device_total_ns,
        SUM(p.device_self_ns) AS device_self_ns,
        MIN(p.min_ns) AS min_ns,
        MAX(p.max_ns) AS max_ns,
        SUM(p.sum_squares_ns2) AS sum_squares_ns2,
        SUM(p.kernel_count) AS kernel_count
    FROM picked AS p
    GROUP BY p.run_id, p.stage, p.rank, p.step, p.op_key_id, p.call_stack_id
),

ranked AS (
    SELECT
        b.*,
        ROW_NUMBER() OVER (
            PARTITION BY b.run_id, b.stage, b.rank, b.step, b.op_key_id
            ORDER BY CASE WHEN b.call_stack_id IS NULL THEN 1 ELSE 0 END, b.calls DESC, b.call_stack_id
        ) AS place
    FROM by_stack AS b
),

summed AS (
    SELECT
        r.run_id,
        r.stage,
        r.rank,
        r.step,
        r.op_key_id,
        MAX(CASE WHEN r.place = 1 THEN r.call_stack_id END) AS call_stack_id,
        CAST(SUM(r.calls) AS BIGINT) AS calls,
        CAST(SUM(r.host_total_ns) AS BIGINT) AS host_total_ns,
        CAST(SUM(r.host_self_ns) AS BIGINT) AS host_self_ns,
        CAST(SUM(r.device_total_ns) AS BIGINT) AS device_total_ns,
        CAST(SUM(r.device_self_ns) AS BIGINT) AS device_self_ns,
        MIN(r.min_ns) AS min_ns,
        MAX(r.max_ns) AS max_ns,
        SUM(r.sum_squares_ns2) AS sum_squares_ns2,
        CAST(SUM(r.kernel_count) AS BIGINT) AS kernel_count
    FROM ranked AS r
    GROUP BY r.run_id, r.stage, r.rank, r.step, r.op_key_id
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.step,
    k.name,
    k.input_shapes,
    k.input_types,
    k.module,
    k.phase,
    s.calls,
    s.host_total_ns,
    s.host_self_ns,
    s.device_total_ns,
    s.device_self_ns,
    s.min_ns,
    s.max_ns,
    s.sum_squares_ns2,
    s.kernel_count,
    t.text AS call_stack
FROM summed AS s
INNER JOIN op_key AS k ON s.op_key_id = k.id
LEFT JOIN call_stack AS t ON s.call_stack_id = t.id
ORDER BY
    COALESCE(s.device_self_ns, -1) DESC,
    COALESCE(s.host_self_ns, -1) DESC,
    k.name, k.input_shapes, k.input_types, k.module, k.phase, s.run_id, s.stage, s.rank, s.step
