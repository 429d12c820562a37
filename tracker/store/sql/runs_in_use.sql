-- On which runs do open findings rest? One row per finding.
-- Parameters: none
-- Columns: runs: numbers with blanks between them
SELECT f.reference_runs || ' ' || f.new_runs AS runs
FROM finding AS f
WHERE f.state = 'open'
ORDER BY f.id
