-- Why did the devices of a run do nothing? One row per rank, step, cause and place.
-- Parameters: run_id
-- Columns: rank, step, cause; ns: idle time
SELECT
    d.rank,
    d.step,
    c.text AS cause,
    d.ns
FROM idle AS d
INNER JOIN detail_text AS c ON d.cause_id = c.id
WHERE d.run_id = :run_id
ORDER BY d.rank, d.ordinal
