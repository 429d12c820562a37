-- Which active runs have fewer ranks than they should, and are no runs of their track? One row per run.
-- Parameters: workload: its name, with its branches (NULL = all)
-- Columns: run_id; workload_id, configuration_id, device_id: its track; workload, version; vendor, device: the model;
--   ranks: that came; ranks_awaited: that it should have; last_rank_at_ns: when the last one came, NULL: not known;
--   step_ns: of the ranks that came, in whole ns, NULL: unknown
SELECT
    r.id AS run_id,
    r.workload_id,
    r.configuration_id,
    r.device_id,
    w.name AS workload,
    v.label AS version,
    d.vendor,
    d.model AS device,
    (
        SELECT COUNT(*)
        FROM capture AS c
        WHERE c.run_id = r.id
    ) AS ranks,
    r.ranks_awaited,
    r.last_rank_at_ns,
    (
        SELECT CAST(ROUND(MAX(n.value)) AS BIGINT)
        FROM series AS s
        INNER JOIN sample AS n ON s.id = n.series_id
        WHERE
            s.workload_id = r.workload_id
            AND s.configuration_id = r.configuration_id
            AND s.device_id = r.device_id
            AND s.kind = 'run'
            AND s.name = 'step'
            AND s.step_kind = ''
            AND n.run_id = r.id
    ) AS step_ns
FROM run AS r
INNER JOIN workload AS w ON r.workload_id = w.id
INNER JOIN version AS v ON r.version_id = v.id
INNER JOIN device AS d ON r.device_id = d.id
LEFT JOIN workload AS m ON w.main_id = m.id
WHERE
    r.ranks_awaited IS NOT NULL
    AND r.state = 'active'
    AND (CAST(:workload AS TEXT) IS NULL OR :workload IN (w.name, m.name))
ORDER BY r.id
