-- What are the kernels of these runs called? One row per kernel; those that differ in types or formats alone say the
-- same.
-- Parameters: run_ids (list)
-- Columns: kernel_key_id; name, canonical_name, type, core_type, input_shapes
SELECT
    k.id AS kernel_key_id,
    k.name,
    k.canonical_name,
    k.type,
    k.core_type,
    k.input_shapes
FROM kernel_key AS k
WHERE
    k.id IN (
        SELECT d.kernel_key_id
        FROM kernel AS d
        WHERE d.run_id IN :run_ids
    )
