-- How does the newest version of each branch stand? One row per track of a branch with active runs.
-- Parameters: none
-- Columns: workload: with the branch in its name; configuration: its values; vendor, device: the model; version: its
--   newest one; runs: active ones of it; base_runs: those of the main line that it was judged against, numbers with
--   blanks between them; step_before_ns, step_after_ns: of the step; step_verdict. The last four are NULL where it was
--   not judged.
WITH of_versions AS (
    SELECT
        r.workload_id,
        r.configuration_id,
        r.device_id,
        r.version_id,
        v.label,
        CAST(COUNT(*) AS BIGINT) AS runs,
        ROW_NUMBER() OVER (
            PARTITION BY r.workload_id, r.configuration_id, r.device_id
            ORDER BY v.ordinal DESC, v.id DESC
        ) AS place
    FROM run AS r
    INNER JOIN workload AS w ON r.workload_id = w.id
    INNER JOIN version AS v ON r.version_id = v.id
    WHERE w.main_id IS NOT NULL AND r.state = 'active' AND r.ranks_awaited IS NULL
    GROUP BY r.workload_id, r.configuration_id, r.device_id, r.version_id, v.label, v.ordinal, v.id
)

SELECT
    w.name AS workload,
    g.title AS configuration,
    d.vendor,
    d.model AS device,
    n.label AS version,
    n.runs,
    j.base_runs,
    j.step_before_ns,
    j.step_after_ns,
    j.step_verdict
FROM of_versions AS n
INNER JOIN workload AS w ON n.workload_id = w.id
INNER JOIN configuration AS g ON n.configuration_id = g.id
INNER JOIN device AS d ON n.device_id = d.id
LEFT JOIN judged_version AS j
    ON
        n.workload_id = j.workload_id
        AND n.configuration_id = j.configuration_id
        AND n.device_id = j.device_id
        AND n.version_id = j.version_id
WHERE n.place = 1
ORDER BY w.name, g.title, d.vendor, d.model
