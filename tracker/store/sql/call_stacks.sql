-- Which call stacks were recorded in these runs? One row per call stack.
-- Parameters: run_ids (list)
-- Columns: call_stack_id; text
SELECT
    t.id AS call_stack_id,
    t.text
FROM call_stack AS t
WHERE
    t.id IN (
        SELECT d.call_stack_id
        FROM op AS d
        WHERE d.run_id IN :run_ids
    )
