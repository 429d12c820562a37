-- Which of these captures are in, in whatever file, and where? One row per capture that is.
-- Parameters: digests (list of capture.identity)
-- Columns: digest: its identity; run_id, rank; state, state_reason, version, workload: of the run that holds it
SELECT
    c.identity AS digest,
    c.run_id,
    c.rank,
    r.state,
    r.state_reason,
    v.label AS version,
    w.name AS workload
FROM capture AS c
INNER JOIN run AS r ON c.run_id = r.id
INNER JOIN version AS v ON r.version_id = v.id
INNER JOIN workload AS w ON r.workload_id = w.id
WHERE c.identity IN :digests
ORDER BY c.identity, c.run_id, c.rank
