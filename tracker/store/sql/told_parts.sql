-- Which ranks say more of their ops and kernels than collectives? One row per run and rank.
-- Parameters: run_ids (list); unlinked, no_op: names of the ops that stand for work without one
-- Columns: run_id, rank; has_ops, has_kernels: 1 where the table has rows of this rank that tell more than its
--   collectives, else 0
SELECT
    c.run_id,
    c.rank,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM op AS o
                INNER JOIN op_key AS k ON o.op_key_id = k.id
                INNER JOIN detail_text AS n ON k.name_id = n.id
                WHERE o.run_id = c.run_id AND o.rank = c.rank AND n.text NOT IN (:unlinked, :no_op)
            )
            THEN 1
        ELSE 0
    END AS has_ops,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM kernel AS k
                INNER JOIN detail_text AS g ON k.category_id = g.id
                WHERE k.run_id = c.run_id AND k.rank = c.rank AND g.text <> 'communication'
            )
            THEN 1
        ELSE 0
    END AS has_kernels
FROM capture AS c
WHERE c.run_id IN :run_ids
ORDER BY c.run_id, c.rank
