-- Which kernels did this rank run, but for communication, copies and memsets? One row per name.
-- Parameters: run_id, rank
-- Columns: name: the type where the source states one, as on Ascend, else the name
SELECT COALESCE(NULLIF(k.type, ''), k.canonical_name) AS name
FROM kernel AS d
INNER JOIN kernel_key AS k ON d.kernel_key_id = k.id
INNER JOIN detail_text AS c ON d.category_id = c.id
WHERE
    d.run_id = :run_id
    AND d.rank = :rank
    AND c.text NOT IN ('communication', 'copy', 'memset')
GROUP BY COALESCE(NULLIF(k.type, ''), k.canonical_name)
ORDER BY COALESCE(NULLIF(k.type, ''), k.canonical_name)
