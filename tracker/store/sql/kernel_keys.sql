-- What are these kernels called? One row per kernel; those that differ in types or formats alone say the same.
-- Parameters: ids (a JSON object whose keys are the kernels)
-- Columns: kernel_key_id; name, canonical_name, type, core_type, input_shapes
SELECT
    k.id AS kernel_key_id,
    k.name,
    k.canonical_name,
    k.type,
    k.core_type,
    k.input_shapes
FROM kernel_key AS k
WHERE k.id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)
