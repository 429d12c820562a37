-- What did the machine do while runs were recorded? One row per run and key that is known.
-- Parameters: ids (a JSON object whose keys are the runs); words (a JSON object whose keys are the keys)
-- Columns: run_id; key, value: text
SELECT
    f.run_id,
    f.key,
    f.value
FROM run_fact AS f
WHERE
    f.run_id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)
    AND f.kind = 'fact'
    AND f.key IN (SELECT w.key FROM JSON_EACH(:words) AS w)
ORDER BY f.run_id, f.key
