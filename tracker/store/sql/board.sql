-- How long was a step of each active run that waits for no rank? One row per run and number that it states.
-- Parameters: workload (name, NULL = all)
-- Columns: workload_id, configuration_id, device_id: its track; version_id; version: its label, in the order of
--   versions; pinned; run_id; name: step or e2e; part: how it was measured; step_kind: of which
--   steps, '': of all; judged_kind: of the steps by which the version was judged; value: ns
WITH picked AS (
    SELECT
        s.id,
        s.name,
        s.part,
        s.step_kind
    FROM series AS s
    INNER JOIN workload AS w ON s.workload_id = w.id
    WHERE
        s.kind = 'run'
        AND s.metric IN ('duration_ns', 'e2e_ns')
        AND (CAST(:workload AS TEXT) IS NULL OR w.name = :workload)
)

SELECT
    r.workload_id,
    r.configuration_id,
    r.device_id,
    v.id AS version_id,
    v.label AS version,
    v.pinned,
    r.id AS run_id,
    p.name,
    p.part,
    p.step_kind,
    COALESCE(j.step_kind, '') AS judged_kind,
    d.value
FROM picked AS p
-- the few series first: from the runs on, all samples of all of them would be read
CROSS JOIN sample AS d
INNER JOIN run AS r ON d.run_id = r.id
INNER JOIN version AS v ON r.version_id = v.id
LEFT JOIN judged_version AS j
    ON
        r.workload_id = j.workload_id
        AND r.configuration_id = j.configuration_id
        AND r.device_id = j.device_id
        AND r.version_id = j.version_id
WHERE d.series_id = p.id AND r.state = 'active' AND r.ranks_awaited IS NULL
ORDER BY r.workload_id, r.configuration_id, r.device_id, v.ordinal, v.id, r.id, p.name, p.part, p.step_kind
