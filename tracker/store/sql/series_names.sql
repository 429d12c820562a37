-- Which names do the series of this workload have? One row per kind and name.
-- Parameters: workload (its name); kind (NULL = all)
-- Columns: kind, name
SELECT
    s.kind,
    s.name
FROM series AS s
INNER JOIN workload AS w ON s.workload_id = w.id
WHERE w.name = :workload AND (CAST(:kind AS TEXT) IS NULL OR s.kind = :kind)
GROUP BY s.kind, s.name
ORDER BY s.kind, s.name
