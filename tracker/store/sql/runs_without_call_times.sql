-- Which of these runs were timed on the host by an earlier program, which did not keep times by calls? One row per run.
-- Parameters: run_ids (list)
-- Columns: run_id
SELECT c.run_id
FROM capture AS c
WHERE
    c.run_id IN :run_ids
    AND c.timeline = 'host'
    AND EXISTS (
        -- only where each call was known
        SELECT 1
        FROM op AS o
        WHERE
            o.run_id = c.run_id
            AND o.rank = c.rank
            AND o.sum_squares_ns2 IS NOT NULL
    )
    AND NOT EXISTS (
        SELECT 1
        FROM op AS o
        WHERE
            o.run_id = c.run_id
            AND o.rank = c.rank
            AND o.self_by_median_ns IS NOT NULL
    )
GROUP BY c.run_id
ORDER BY c.run_id
