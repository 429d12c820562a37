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
    k.name,
    k.input_shapes,
    k.module,
    k.phase
FROM op_key AS k
INNER JOIN used AS u ON k.id = u.op_key_id
ORDER BY k.id
