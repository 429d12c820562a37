-- What are the kernels that a run launched? One row per kernel.
-- Parameters: run_id
-- Columns: id: of the kernel key; canonical_name, input_shapes
WITH used AS (
    SELECT DISTINCT d.kernel_key_id
    FROM kernel AS d
    WHERE d.run_id = :run_id
)

SELECT
    k.id,
    k.canonical_name,
    k.input_shapes
FROM kernel_key AS k
INNER JOIN used AS u ON k.id = u.kernel_key_id
ORDER BY k.id
