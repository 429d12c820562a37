-- Which steps does this capture count? One row per step.
-- Parameters: run_id, rank
-- Columns: step
SELECT s.step
FROM step AS s
WHERE s.run_id = :run_id AND s.rank = :rank
ORDER BY s.start_ns, s.step
