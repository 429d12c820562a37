-- When did the captures of these runs begin? One row per run and rank.
-- Parameters: run_ids (list)
-- Columns: run_id, rank, started_at_ns (UTC, NULL: unknown)
SELECT
    c.run_id,
    c.rank,
    c.started_at_ns
FROM capture AS c
WHERE c.run_id IN :run_ids
ORDER BY c.run_id, c.rank
