-- On which hosts did these runs run? One row per run and host, of hosts that are known.
-- Parameters: run_ids (list)
-- Columns: run_id, host
SELECT DISTINCT
    c.run_id,
    c.host
FROM capture AS c
WHERE c.run_id IN :run_ids AND c.host <> ''
ORDER BY c.run_id, c.host
