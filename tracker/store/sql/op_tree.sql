-- From where was each op called? One row per run and rank, with what all of its steps say.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0)
-- Columns: run_id, rank, stage (NULL: none); contexts: see the table op_tree
SELECT
    t.run_id,
    t.rank,
    c.stage,
    t.contexts
FROM op_tree AS t
INNER JOIN capture AS c ON t.run_id = c.run_id AND t.rank = c.rank
WHERE
    t.run_id IN :run_ids
    AND (:all_ranks = 1 OR t.rank IN :ranks)
ORDER BY t.run_id, t.rank
