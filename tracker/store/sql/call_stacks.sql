-- Which call stacks were recorded in these runs? One row per call stack and per stack that one was called from.
-- Parameters: run_ids (list)
-- Columns: call_stack_id; parent_id: the stack that it was called from (0: none); frame: its innermost one
WITH RECURSIVE used (id) AS (
    SELECT d.call_stack_id
    FROM op AS d
    WHERE d.run_id IN :run_ids AND d.call_stack_id IS NOT NULL

    UNION

    SELECT p.call_stack_id
    FROM memory_peak AS p
    WHERE p.run_id IN :run_ids AND p.call_stack_id IS NOT NULL

    UNION

    SELECT b.call_stack_id
    FROM memory_block AS b
    WHERE b.run_id IN :run_ids AND b.call_stack_id IS NOT NULL

    UNION

    SELECT c.parent_id
    FROM call_stack AS c
    INNER JOIN used AS u ON c.id = u.id
)

SELECT
    c.id AS call_stack_id,
    c.parent_id,
    t.text AS frame
FROM call_stack AS c
INNER JOIN used AS u ON c.id = u.id
INNER JOIN detail_text AS t ON c.frame_id = t.id
