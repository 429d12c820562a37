-- Which series of a kind and metric are the largest in this run? One row per series, the largest first.
-- Parameters: run_id; kind, metric; row_limit
-- Columns: series_id
SELECT d.series_id
FROM sample AS d
INNER JOIN series AS s ON d.series_id = s.id
WHERE
    d.run_id = :run_id
    AND s.kind = :kind
    AND s.metric = :metric
ORDER BY d.value DESC, d.series_id
LIMIT :row_limit
