-- Which captures of active runs did a check find something in, or are cut? One row per capture that is partial.
-- Parameters: workload (name, NULL = all)
-- Columns: run_id, rank; quality_reason: why; settings: JSON
SELECT
    c.run_id,
    c.rank,
    c.quality_reason,
    c.settings
FROM capture AS c
INNER JOIN run AS r ON c.run_id = r.id
INNER JOIN workload AS w ON r.workload_id = w.id
WHERE
    c.quality = 'partial'
    AND r.state = 'active'
    AND (CAST(:workload AS TEXT) IS NULL OR w.name = :workload)
ORDER BY c.run_id, c.rank
