-- Which ranks say anything of memory and of host API calls? One row per run and rank.
-- Parameters: run_ids (list)
-- Columns: run_id, rank; has_memory, has_api: 1 where the table has rows of this rank, else 0
WITH of_memory AS (
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
    CASE WHEN m.rank IS NULL THEN 0 ELSE 1 END AS has_memory,
    CASE WHEN a.rank IS NULL THEN 0 ELSE 1 END AS has_api
FROM capture AS c
LEFT JOIN of_memory AS m ON c.run_id = m.run_id AND c.rank = m.rank
LEFT JOIN of_api AS a ON c.run_id = a.run_id AND c.rank = a.rank
WHERE c.run_id IN :run_ids
ORDER BY c.run_id, c.rank
