-- Which ranks of these runs lost their details? One row per rank.
-- Parameters: run_ids (list)
-- Columns: run_id, rank
SELECT
    c.run_id,
    c.rank
FROM capture AS c
WHERE c.run_id IN :run_ids AND c.pruned_at_ns IS NOT NULL
ORDER BY c.run_id, c.rank
