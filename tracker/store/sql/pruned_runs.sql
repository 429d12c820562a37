-- Which of these runs lost details, and when? One row per run that did.
-- Parameters: run_ids (list)
-- Columns: run_id; pruned_at_ns: UTC, the newest of its ranks; ranks: that lost theirs
SELECT
    c.run_id,
    MAX(c.pruned_at_ns) AS pruned_at_ns,
    COUNT(*) AS ranks
FROM capture AS c
WHERE c.run_id IN :run_ids AND c.pruned_at_ns IS NOT NULL
GROUP BY c.run_id
ORDER BY c.run_id
