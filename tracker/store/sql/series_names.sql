-- Which names do the series of this workload have? One row per kind and name.
-- Parameters: workload (its name)
-- Columns: kind, name
SELECT
    s.kind,
    s.name
FROM series AS s
INNER JOIN workload AS w ON s.workload_id = w.id
WHERE w.name = :workload
GROUP BY s.kind, s.name
ORDER BY s.kind, s.name
