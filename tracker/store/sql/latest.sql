-- Which active run came in last, or some runs before the last? One row, or none where there are fewer.
-- Parameters: run_offset (0: the last); workload (NULL = all)
-- Columns: run_id
SELECT r.id AS run_id
FROM run AS r
INNER JOIN workload AS w ON r.workload_id = w.id
WHERE
    r.state = 'active'
    AND (CAST(:workload AS TEXT) IS NULL OR w.name = :workload)
ORDER BY r.id DESC
LIMIT 1 OFFSET :run_offset
