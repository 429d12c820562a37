-- How often did this rank exchange what? One row per kind of collective.
-- Parameters: run_id, rank
-- Columns: kind; calls
SELECT
    k.text AS kind,
    CAST(SUM(d.calls) AS BIGINT) AS calls
FROM communication AS d
INNER JOIN detail_text AS k ON d.kind_id = k.id
WHERE d.run_id = :run_id AND d.rank = :rank
GROUP BY k.text
ORDER BY k.text
