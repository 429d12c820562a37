-- What did the collectives consist of? One row per grain, collective, task name and plane.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0); by_stage, by_rank, by_step (1: keep them apart)
-- Columns: run_id, stage (NULL: none, or not asked for), rank, step (meaningless unless asked for);
--   kind, group_role, group_size (NULL: unknown), data_type, size_class_bytes (NULL: unknown): the collective;
--   name, plane: the task; calls; total_ns, min_ns, max_ns: device time, of all calls and of one
WITH picked AS (
    SELECT
        d.run_id,
        CASE WHEN :by_stage = 1 THEN COALESCE(c.stage, -1) ELSE -1 END AS stage,
        CASE WHEN :by_rank = 1 THEN d.rank ELSE -1 END AS rank,
        CASE WHEN :by_step = 1 THEN m.step ELSE -1 END AS step,
        m.kind,
        g.role AS group_role,
        g.size AS group_size,
        m.data_type,
        m.size_class_bytes,
        d.name,
        d.plane,
        d.calls,
        d.total_ns,
        d.min_ns,
        d.max_ns
    FROM communication_task AS d
    INNER JOIN communication AS m ON d.run_id = m.run_id AND d.rank = m.rank AND d.communication = m.ordinal
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    INNER JOIN process_group AS g ON m.process_group_id = g.id
    WHERE
        d.run_id IN :run_ids
        AND (:all_ranks = 1 OR d.rank IN :ranks)
        AND (:in_steps = 0 OR m.step >= 0)
        AND (:all_steps = 1 OR m.step IN :steps)
)

SELECT
    p.run_id,
    NULLIF(p.stage, -1) AS stage,
    p.rank,
    p.step,
    p.kind,
    p.group_role,
    NULLIF(p.group_size, -1) AS group_size,
    p.data_type,
    NULLIF(p.size_class_bytes, -1) AS size_class_bytes,
    p.name,
    p.plane,
    CAST(SUM(p.calls) AS BIGINT) AS calls,
    CAST(SUM(p.total_ns) AS BIGINT) AS total_ns,
    MIN(p.min_ns) AS min_ns,
    MAX(p.max_ns) AS max_ns
FROM picked AS p
GROUP BY
    p.run_id, p.stage, p.rank, p.step, p.kind, p.group_role, p.group_size, p.data_type, p.size_class_bytes, p.name,
    p.plane
ORDER BY
    COALESCE(SUM(p.total_ns), -1) DESC,
    p.kind, p.group_role, p.group_size, p.data_type, p.size_class_bytes, p.name, p.plane, p.run_id, p.stage, p.rank,
    p.step
