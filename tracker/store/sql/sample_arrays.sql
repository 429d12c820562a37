-- What do these runs say of all their series? One row per run that has an array.
-- Parameters: run_ids (list)
-- Columns: run_id; numbers: see the table sample_array
SELECT
    a.run_id,
    a.numbers
FROM sample_array AS a
WHERE a.run_id IN :run_ids
ORDER BY a.run_id
