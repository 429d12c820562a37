-- Which functions of the device runtime did a run call? One row per rank, step, level and name.
-- Parameters: run_id
-- Columns: rank, step, level, name; calls; total_ns, self_ns: host time, with and without nested calls
SELECT
    d.rank,
    d.step,
    l.text AS level,
    n.text AS name,
    d.calls,
    d.total_ns,
    d.self_ns
FROM api AS d
INNER JOIN detail_text AS l ON d.level_id = l.id
INNER JOIN detail_text AS n ON d.name_id = n.id
WHERE d.run_id = :run_id
ORDER BY d.rank, d.ordinal
