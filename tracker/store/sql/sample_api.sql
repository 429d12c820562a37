-- Which functions of the device runtime did a run call? One row per rank, step, level and name.
-- Parameters: run_id
-- Columns: rank, step, level, name; calls; total_ns, self_ns: host time, with and without nested calls
SELECT
    d.rank,
    d.step,
    d.level,
    d.name,
    d.calls,
    d.total_ns,
    d.self_ns
FROM api AS d
WHERE d.run_id = :run_id
ORDER BY d.rank, d.ordinal
