-- Which captures of this workload began at this time, and what are their steps? One row per step.
-- Parameters: workload; started_at_ns (UTC, ns)
-- Columns: run_id, rank; state, state_reason, version, workload: of its run; step, start_ns, duration_ns
SELECT
    c.run_id,
    c.rank,
    r.state,
    r.state_reason,
    v.label AS version,
    w.name AS workload,
    s.step,
    s.start_ns,
    s.duration_ns
FROM capture AS c
INNER JOIN run AS r ON c.run_id = r.id
INNER JOIN version AS v ON r.version_id = v.id
INNER JOIN workload AS w ON r.workload_id = w.id
INNER JOIN step AS s ON c.run_id = s.run_id AND c.rank = s.rank
WHERE w.name = :workload AND c.started_at_ns = :started_at_ns
ORDER BY c.run_id, c.rank, s.step
