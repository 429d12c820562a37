-- Which tracks are there: workload, configuration and device that runs share? One row per track; none of experiments,
-- but for runs that are named.
-- Parameters: all_runs (1: yes), run_ids (list, read when all_runs = 0: only tracks of these runs); workload (name,
--   NULL = all)
-- Columns: workload_id, configuration_id, device_id; workload; configuration: its values; vendor, device: the model;
--   is_branch: 1 for the track of a branch; runs: active ones that wait for no rank
WITH of_runs AS (
    SELECT
        r.workload_id,
        r.configuration_id,
        r.device_id,
        CAST(SUM(CASE WHEN r.state = 'active' AND r.ranks_awaited IS NULL THEN 1 ELSE 0 END) AS BIGINT) AS runs
    FROM run AS r
    WHERE (:all_runs = 1 AND r.experiment_id IS NULL) OR r.id IN :run_ids
    GROUP BY r.workload_id, r.configuration_id, r.device_id
)

SELECT
    n.workload_id,
    n.configuration_id,
    n.device_id,
    w.name AS workload,
    g.title AS configuration,
    d.vendor,
    d.model AS device,
    CASE WHEN w.main_id IS NULL THEN 0 ELSE 1 END AS is_branch,
    n.runs
FROM of_runs AS n
INNER JOIN workload AS w ON n.workload_id = w.id
INNER JOIN configuration AS g ON n.configuration_id = g.id
INNER JOIN device AS d ON n.device_id = d.id
WHERE CAST(:workload AS TEXT) IS NULL OR w.name = :workload
ORDER BY w.name, g.title, d.vendor, d.model, n.workload_id, n.configuration_id, n.device_id
