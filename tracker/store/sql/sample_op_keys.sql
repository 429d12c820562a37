-- What are the ops that a run called or that allocated memory? One row per op.
-- Parameters: run_id
-- Columns: id: of the op key; name, input_shapes, module, phase
WITH used AS (
    SELECT d.op_key_id
    FROM op AS d
    WHERE d.run_id = :run_id

    UNION

    SELECT m.op_key_id
    FROM memory AS m
    WHERE m.run_id = :run_id
)

SELECT
    k.id,
    n.text AS name,
    i.text AS input_shapes,
    m.text AS module,
    h.text AS phase
FROM op_key AS k
INNER JOIN used AS u ON k.id = u.op_key_id
INNER JOIN detail_text AS n ON k.name_id = n.id
INNER JOIN detail_text AS i ON k.input_shapes_id = i.id
INNER JOIN detail_text AS m ON k.module_id = m.id
INNER JOIN detail_text AS h ON k.phase_id = h.id
ORDER BY k.id
