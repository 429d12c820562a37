-- What are these kernels called? One row per kernel.
-- Parameters: ids (a JSON object whose keys are the kernels)
-- Columns: kernel_key_id; name, canonical_name, type, core_type, input_shapes, input_types, input_formats
SELECT
    k.id AS kernel_key_id,
    k.name,
    k.canonical_name,
    k.type,
    k.core_type,
    k.input_shapes,
    k.input_types,
    k.input_formats
FROM kernel_key AS k
WHERE k.id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)
