-- Which kernels of these runs, none of them counted as communication, are named as those of HCCL are? One row per run
--   and kernel.
-- Parameters: run_ids (list)
-- Columns: run_id; name
WITH named AS (
    SELECT
        k.id,
        k.name
    FROM kernel_key AS k
    WHERE LOWER(k.name) LIKE '%aivkernel' OR LOWER(k.name) LIKE '%cpu%kernel'
)

SELECT DISTINCT
    d.run_id,
    n.name
FROM named AS n
INNER JOIN kernel AS d ON n.id = d.kernel_key_id
INNER JOIN detail_text AS t ON d.category_id = t.id
WHERE
    d.run_id IN :run_ids
    AND t.text <> 'communication'
ORDER BY d.run_id, n.name
