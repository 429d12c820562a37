-- Which kernels ran, launched by which ops? One row per grain, kernel (without types and formats), category and op
-- (name and shapes). Copies and memsets are among them.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0); by_stage, by_rank, by_step (1: keep them apart)
-- Columns: run_id, stage (NULL: none, or not asked for), rank, step (meaningless unless asked for);
--   name, canonical_name, type, core_type, input_shapes; category; op, op_input_shapes: the launching op; calls;
--   total_ns, min_ns, max_ns: device time, of all calls and of one; sum_squares_ns2: of the calls; wait_ns: before the
--   kernels; bytes: moved by copies; block_num: blocks that a call ran on, the most of all calls
WITH picked AS (
    SELECT
        d.run_id,
        CASE WHEN :by_stage = 1 THEN COALESCE(c.stage, -1) ELSE -1 END AS stage,
        CASE WHEN :by_rank = 1 THEN d.rank ELSE -1 END AS rank,
        CASE WHEN :by_step = 1 THEN d.step ELSE -1 END AS step,
        d.kernel_key_id,
        d.op_key_id,
        d.category,
        d.calls,
        d.total_ns,
        d.min_ns,
        d.max_ns,
        d.sum_squares_ns2,
        d.wait_ns,
        d.bytes,
        d.block_num
    FROM kernel AS d
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND (:all_ranks = 1 OR d.rank IN :ranks)
        AND (:in_steps = 0 OR d.step >= 0)
        AND (:all_steps = 1 OR d.step IN :steps)
),

-- numbers group faster than texts
summed AS (
    SELECT
        p.run_id,
        p.stage,
        p.rank,
        p.step,
        p.kernel_key_id,
        p.op_key_id,
        p.category,
        SUM(p.calls) AS calls,
        SUM(p.total_ns) AS total_ns,
        MIN(p.min_ns) AS min_ns,
        MAX(p.max_ns) AS max_ns,
        SUM(p.sum_squares_ns2) AS sum_squares_ns2,
        SUM(p.wait_ns) AS wait_ns,
        SUM(p.bytes) AS bytes,
        MAX(p.block_num) AS block_num
    FROM picked AS p
    GROUP BY p.run_id, p.stage, p.rank, p.step, p.kernel_key_id, p.op_key_id, p.category
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.step,
    k.name,
    k.canonical_name,
    k.type,
    k.core_type,
    k.input_shapes,
    s.category,
    o.name AS op,
    o.input_shapes AS op_input_shapes,
    CAST(SUM(s.calls) AS BIGINT) AS calls,
    CAST(SUM(s.total_ns) AS BIGINT) AS total_ns,
    MIN(s.min_ns) AS min_ns,
    MAX(s.max_ns) AS max_ns,
    SUM(s.sum_squares_ns2) AS sum_squares_ns2,
    CAST(SUM(s.wait_ns) AS BIGINT) AS wait_ns,
    CAST(SUM(s.bytes) AS BIGINT) AS bytes,
    MAX(s.block_num) AS block_num
FROM summed AS s
INNER JOIN kernel_key AS k ON s.kernel_key_id = k.id
INNER JOIN op_key AS o ON s.op_key_id = o.id
GROUP BY
    s.run_id, s.stage, s.rank, s.step, k.name, k.canonical_name, k.type, k.core_type, k.input_shapes, s.category,
    o.name, o.input_shapes
ORDER BY
    COALESCE(SUM(s.total_ns), -1) DESC,
    k.name, k.canonical_name, k.type, k.core_type, k.input_shapes, s.category, o.name, o.input_shapes, s.run_id,
    s.stage, s.rank, s.step
