-- What are the ops called that these runs called, or that launched their kernels? One row per op.
-- Parameters: run_ids (list)
-- Columns: op_key_id; name, input_shapes, input_types, module, phase
SELECT
    k.id AS op_key_id,
    n.text AS name,
    i.text AS input_shapes,
    y.text AS input_types,
    m.text AS module,
    h.text AS phase
FROM op_key AS k
INNER JOIN op_text AS n ON k.name_id = n.id
INNER JOIN op_text AS i ON k.input_shapes_id = i.id
INNER JOIN op_text AS y ON k.input_types_id = y.id
INNER JOIN op_text AS m ON k.module_id = m.id
INNER JOIN op_text AS h ON k.phase_id = h.id
WHERE
    k.id IN (
        SELECT d.op_key_id
        FROM op AS d
        WHERE d.run_id IN :run_ids

        UNION

        SELECT l.op_key_id
        FROM kernel AS l
        WHERE l.run_id IN :run_ids
    )
