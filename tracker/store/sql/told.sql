-- Which ranks say anything of their ops, kernels, memory and host API calls? One row per run and rank.
-- Parameters: run_ids (list); unlinked, no_op: names of the ops that stand for work without one
-- Columns: run_id, rank; has_ops, has_kernels: 1 where the table has rows of this rank that tell more than its
--   collectives, or where it is known that there was nothing to tell; has_memory, has_api: 1 where the table has rows
--   of this rank; else 0
WITH found AS (
    SELECT
        c.run_id,
        c.rank,
        CASE
            WHEN
                c.kernel_total_ns IS NOT NULL
                OR EXISTS (
                    SELECT 1
                    FROM op AS o
                    INNER JOIN op_key AS k ON o.op_key_id = k.id
                    INNER JOIN op_text AS n ON k.name_id = n.id
                    WHERE o.run_id = c.run_id AND o.rank = c.rank AND n.text NOT IN (:unlinked, :no_op)
                )
                THEN 1
            ELSE 0
        END AS has_ops,
        CASE
            WHEN
                c.kernel_total_ns IS NOT NULL
                OR EXISTS (
                    SELECT 1
                    FROM kernel AS k
                    WHERE k.run_id = c.run_id AND k.rank = c.rank AND k.category <> 'communication'
                )
                THEN 1
            ELSE 0
        END AS has_kernels,
        CASE
            WHEN
                EXISTS (
                    SELECT 1
                    FROM memory AS m
                    WHERE m.run_id = c.run_id AND m.rank = c.rank
                )
                THEN 1
            ELSE 0
        END AS has_memory,
        CASE
            WHEN
                EXISTS (
                    SELECT 1
                    FROM api AS a
                    WHERE a.run_id = c.run_id AND a.rank = c.rank
                )
                THEN 1
            ELSE 0
        END AS has_api
    FROM capture AS c
    WHERE c.run_id IN :run_ids
)

SELECT
    f.run_id,
    f.rank,
    f.has_ops,
    f.has_kernels,
    f.has_memory,
    f.has_api
FROM found AS f
ORDER BY f.run_id, f.rank
