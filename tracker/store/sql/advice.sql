-- What do rules say of runs? One row per run that has advice.
-- Parameters: run_ids (list)
-- Columns: run_id; rule_version: of the rules that said it; content: JSON, see the table advice
SELECT
    a.run_id,
    a.rule_version,
    a.content
FROM advice AS a
WHERE a.run_id IN :run_ids
ORDER BY a.run_id
