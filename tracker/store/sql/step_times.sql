-- How long did each step of the ranks of a run take? One row per rank and step.
-- Parameters: run_id
-- Columns: rank; stage: of the pipeline, NULL: none; settings: of the profiler, JSON; step_ns: NULL: unknown;
--   steps: how many the row is the mean of
SELECT
    s.rank,
    c.stage,
    c.settings,
    s.duration_ns AS step_ns,
    COALESCE(s.steps, 1) AS steps
FROM step AS s
INNER JOIN capture AS c ON s.run_id = c.run_id AND s.rank = c.rank
WHERE s.run_id = :run_id
ORDER BY s.rank, s.step
