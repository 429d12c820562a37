-- What do these ops consist of? One row per op.
-- Parameters: ids (a JSON object whose keys are the ops)
-- Columns: op_key_id; name_id, input_shapes_id, input_types_id, module_id, phase_id: see detail_texts.sql
SELECT
    k.id AS op_key_id,
    k.name_id,
    k.input_shapes_id,
    k.input_types_id,
    k.module_id,
    k.phase_id
FROM op_key AS k
WHERE k.id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)
