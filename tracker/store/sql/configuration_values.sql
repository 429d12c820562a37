-- What are the values of all configurations? One row per configuration and key.
-- Parameters: none
-- Columns: configuration_id; key, value: text
SELECT
    v.configuration_id,
    v.key,
    v.value
FROM configuration_value AS v
ORDER BY v.configuration_id, v.key
