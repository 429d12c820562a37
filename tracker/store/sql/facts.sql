-- What is known of runs beside their times? One row per run, kind and key.
-- Parameters: ids (a JSON object whose keys are the runs); kind (NULL = all)
-- Columns: run_id; kind: fact (environment), configuration (must be equal to be compared), tag (the user's own);
--   key, value: text
SELECT
    f.run_id,
    f.kind,
    f.key,
    f.value
FROM run_fact AS f
WHERE
    f.run_id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)
    AND (CAST(:kind AS TEXT) IS NULL OR f.kind = :kind)

UNION ALL

SELECT
    r.id AS run_id,
    'configuration' AS kind,
    v.key,
    v.value
FROM run AS r
INNER JOIN configuration_value AS v ON r.configuration_id = v.configuration_id
WHERE
    r.id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)
    AND (CAST(:kind AS TEXT) IS NULL OR :kind = 'configuration')
ORDER BY 1, 2, 3
