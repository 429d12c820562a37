-- Which of these files are in, and where? One row per file that is.
-- Parameters: digests (list of source.digest)
-- Columns: digest; run_id, state, state_reason, version, workload: of the run that holds it
SELECT
    s.digest,
    s.run_id,
    r.state,
    r.state_reason,
    v.label AS version,
    w.name AS workload
FROM source AS s
INNER JOIN run AS r ON s.run_id = r.id
INNER JOIN version AS v ON r.version_id = v.id
INNER JOIN workload AS w ON r.workload_id = w.id
WHERE s.digest IN :digests
ORDER BY s.digest
