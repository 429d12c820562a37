-- On what, and with which ranks, did this run run? One row per rank, none for an unknown number.
-- Parameters: run_id
-- Columns: vendor, model: of the device; rank
SELECT
    d.vendor,
    d.model,
    c.rank
FROM run AS r
INNER JOIN device AS d ON r.device_id = d.id
INNER JOIN capture AS c ON r.id = c.run_id
WHERE r.id = :run_id
ORDER BY c.rank
