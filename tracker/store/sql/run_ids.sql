-- Which active runs does this name? One row per run, the oldest first.
-- Parameters: version; workload: its name, with its branches (NULL = all); device (pattern of
-- vendor and model in lower case without blanks, - and _, NULL = all)
-- Columns: run_id, workload; device: vendor and model; ranks_awaited: NULL: it waits for no rank
SELECT
    r.id AS run_id,
    w.name AS workload,
    d.vendor || ' ' || d.model AS device,
    r.ranks_awaited
FROM run AS r
INNER JOIN workload AS w ON r.workload_id = w.id
INNER JOIN version AS v ON r.version_id = v.id
INNER JOIN device AS d ON r.device_id = d.id
LEFT JOIN workload AS m ON w.main_id = m.id
WHERE
    r.state = 'active'
    AND (CAST(:version AS TEXT) IS NULL OR v.label = :version)
    AND (CAST(:workload AS TEXT) IS NULL OR :workload IN (w.name, m.name))
    AND (
        CAST(:device AS TEXT) IS NULL
        OR REPLACE(REPLACE(REPLACE(LOWER(d.vendor || d.model), ' ', ''), '-', ''), '_', '')
        LIKE :device ESCAPE '!'
    )
ORDER BY r.id
