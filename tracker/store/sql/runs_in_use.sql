-- On which runs do open findings rest? One row per finding.
-- Parameters: none
-- Columns: runs: numbers with blanks between them
SELECT f.baseline_runs || ' ' || f.candidate_runs || ' ' || COALESCE(f.step_runs, '') AS runs
FROM finding AS f
WHERE f.state IN ('suspect', 'new', 'persisting', 'acknowledged', 'recovering', 'muted', 'reopened')
ORDER BY f.id
