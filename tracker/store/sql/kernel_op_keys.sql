-- What are the ops called that launched the kernels of these runs? One row per op.
-- Parameters: run_ids (list)
-- Columns: op_key_id; name, input_shapes, input_types, module, phase
SELECT
    k.id AS op_key_id,
    k.name,
    k.input_shapes,
    k.input_types,
    k.module,
    k.phase
FROM op_key AS k
WHERE
    k.id IN (
        SELECT d.op_key_id
        FROM kernel AS d
        WHERE d.run_id IN :run_ids
    )
