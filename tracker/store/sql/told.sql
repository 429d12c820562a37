-- Which ranks say anything of their ops, kernels, memory and host API calls? One row per run and rank.
-- Parameters: run_ids (list); unlinked, no_op: names of the ops that stand for work without one
-- Columns: run_id, rank; has_ops, has_kernels: 1 where the table has rows of this rank that tell more than its
--   collectives, or where it is known that there was nothing to tell; has_memory, has_api: 1 where the table has rows
--   of this rank; else 0
WITH of_ops AS (
    SELECT DISTINCT
        o.run_id,
        o.rank
    FROM op AS o
    INNER JOIN op_key AS k ON o.op_key_id = k.id
    WHERE
        o.run_id IN :run_ids
        AND k.name NOT IN (:unlinked, :no_op)
),

of_kernels AS (
    SELECT DISTINCT
        k.run_id,
        k.rank
    FROM kernel AS k
    WHERE
        k.run_id IN :run_ids
        AND k.category <> 'communication'
),

of_memory AS (
    SELECT DISTINCT
        m.run_id,
        m.rank
    FROM memory AS m
    WHERE m.run_id IN :run_ids
),

of_api AS (
    SELECT DISTINCT
        a.run_id,
        a.rank
    FROM api AS a
    WHERE a.run_id IN :run_ids
)

SELECT
    c.run_id,
    c.rank,
    CASE WHEN o.rank IS NULL AND c.kernel_total_ns IS NULL THEN 0 ELSE 1 END AS has_ops,
    CASE WHEN k.rank IS NULL AND c.kernel_total_ns IS NULL THEN 0 ELSE 1 END AS has_kernels,
    CASE WHEN m.rank IS NULL THEN 0 ELSE 1 END AS has_memory,
    CASE WHEN a.rank IS NULL THEN 0 ELSE 1 END AS has_api
FROM capture AS c
LEFT JOIN of_ops AS o ON c.run_id = o.run_id AND c.rank = o.rank
LEFT JOIN of_kernels AS k ON c.run_id = k.run_id AND c.rank = k.rank
LEFT JOIN of_memory AS m ON c.run_id = m.run_id AND c.rank = m.rank
LEFT JOIN of_api AS a ON c.run_id = a.run_id AND c.rank = a.rank
WHERE c.run_id IN :run_ids
ORDER BY c.run_id, c.rank
