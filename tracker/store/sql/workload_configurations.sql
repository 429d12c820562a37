-- What configurations has a workload? One row per value, one row with NULL for a configuration without any.
-- Parameters: workload_id
-- Columns: id; key, value
SELECT
    c.id,
    cv.key,
    cv.value
FROM configuration AS c
LEFT OUTER JOIN configuration_value AS cv ON c.id = cv.configuration_id
WHERE c.workload_id = :workload_id
ORDER BY c.id, cv.key
