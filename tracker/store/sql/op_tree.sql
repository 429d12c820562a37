-- From where was each op called? One row per run, rank and calling context; parents come first.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0)
-- Columns: run_id, rank, stage (NULL: none), node, parent (-1: none); name, input_shapes, input_types; calls;
--   host_total_ns: host time with the ops inside; device_total_ns: launched anywhere below; device_self_ns: by the op
--   itself; kernel_count: device events launched anywhere below
SELECT
    t.run_id,
    t.rank,
    c.stage,
    t.node,
    t.parent,
    n.text AS name,
    i.text AS input_shapes,
    y.text AS input_types,
    CAST(SUM(t.calls) AS BIGINT) AS calls,
    CAST(SUM(t.host_total_ns) AS BIGINT) AS host_total_ns,
    CAST(SUM(t.device_total_ns) AS BIGINT) AS device_total_ns,
    CAST(SUM(t.device_self_ns) AS BIGINT) AS device_self_ns,
    CAST(SUM(t.kernel_count) AS BIGINT) AS kernel_count
FROM op_tree AS t
INNER JOIN capture AS c ON t.run_id = c.run_id AND t.rank = c.rank
INNER JOIN op_key AS k ON t.op_key_id = k.id
INNER JOIN op_text AS n ON k.name_id = n.id
INNER JOIN op_text AS i ON k.input_shapes_id = i.id
INNER JOIN op_text AS y ON k.input_types_id = y.id
WHERE
    t.run_id IN :run_ids
    AND (:all_ranks = 1 OR t.rank IN :ranks)
    AND (:in_steps = 0 OR t.step >= 0)
    AND (:all_steps = 1 OR t.step IN :steps)
GROUP BY t.run_id, t.rank, c.stage, t.node, t.parent, n.text, i.text, y.text
ORDER BY t.run_id, t.rank, t.node
