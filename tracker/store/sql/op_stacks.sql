-- From where are the ops of each rank called? One row per rank, op and call stack; ops without one are left out.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0); step_kind ('': all)
-- Columns: rank; op_key_id: see op_keys.sql; call_stack_id: see call_stacks.sql
SELECT DISTINCT
    d.rank,
    d.op_key_id,
    d.call_stack_id
FROM op AS d
WHERE
    d.run_id IN :run_ids
    AND d.call_stack_id IS NOT NULL
    AND (:all_ranks = 1 OR d.rank IN :ranks)
    AND (:in_steps = 0 OR d.step >= 0)
    AND (:all_steps = 1 OR d.step IN :steps)
    AND (
        :step_kind = ''
        OR EXISTS (
            SELECT 1
            FROM step AS n
            WHERE n.run_id = d.run_id AND n.rank = d.rank AND n.step = d.step AND n.kind = :step_kind
        )
    )
ORDER BY d.rank, d.op_key_id, d.call_stack_id
