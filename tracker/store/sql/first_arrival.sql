-- When did the first of these runs come in? One row.
-- Parameters: run_ids (list)
-- Columns: arrived_ns: when its last rank came in, 0: before this was kept, NULL: there are no such runs
SELECT MIN(COALESCE(r.last_rank_at_ns, 0)) AS arrived_ns
FROM run AS r
WHERE r.id IN :run_ids
ORDER BY arrived_ns
