-- Which ops allocated memory, and how much? One row per grain, op (name, shapes, types) and component.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0); by_stage, by_rank, by_step (1: keep them apart)
-- Columns: run_id, stage (NULL: none, or not asked for), rank, step (meaningless unless asked for);
--   op, input_shapes, input_types; component; calls: allocations; bytes: allocated by the op, or by a helper inside it;
--   held_ns: until freed, summed over what was freed; unreleased_bytes: never freed in the capture. Another sum is NULL
--   where it is not known of every row
WITH picked AS (
    SELECT
        d.run_id,
        CASE WHEN :by_stage = 1 THEN COALESCE(c.stage, -1) ELSE -1 END AS stage,
        CASE WHEN :by_rank = 1 THEN d.rank ELSE -1 END AS rank,
        CASE WHEN :by_step = 1 THEN d.step ELSE -1 END AS step,
        d.op_key_id,
        d.component_id,
        d.calls,
        d.bytes,
        d.held_ns,
        d.unreleased_bytes
    FROM memory AS d
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND (:all_ranks = 1 OR d.rank IN :ranks)
        AND (:in_steps = 0 OR d.step >= 0)
        AND (:all_steps = 1 OR d.step IN :steps)
),

summed AS (
    SELECT
        p.run_id,
        p.stage,
        p.rank,
        p.step,
        k.name_id,
        k.input_shapes_id,
        k.input_types_id,
        p.component_id,
        COALESCE(SUM(p.bytes), -1) AS known_bytes,
        CASE WHEN COUNT(p.calls) = COUNT(*) THEN CAST(SUM(p.calls) AS BIGINT) END AS calls,
        CASE WHEN COUNT(p.bytes) = COUNT(*) THEN CAST(SUM(p.bytes) AS BIGINT) END AS bytes,
        CAST(SUM(p.held_ns) AS BIGINT) AS held_ns,
        CASE
            WHEN COUNT(p.unreleased_bytes) = COUNT(*) THEN CAST(SUM(p.unreleased_bytes) AS BIGINT)
        END AS unreleased_bytes
    FROM picked AS p
    INNER JOIN op_key AS k ON p.op_key_id = k.id
    GROUP BY p.run_id, p.stage, p.rank, p.step, k.name_id, k.input_shapes_id, k.input_types_id, p.component_id
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.step,
    n.text AS op,
    i.text AS input_shapes,
    y.text AS input_types,
    t.text AS component,
    s.calls,
    s.bytes,
    s.held_ns,
    s.unreleased_bytes
FROM summed AS s
INNER JOIN detail_text AS n ON s.name_id = n.id
INNER JOIN detail_text AS i ON s.input_shapes_id = i.id
INNER JOIN detail_text AS y ON s.input_types_id = y.id
INNER JOIN detail_text AS t ON s.component_id = t.id
ORDER BY s.known_bytes DESC, n.text, i.text, y.text, t.text, s.run_id, s.stage, s.rank, s.step
