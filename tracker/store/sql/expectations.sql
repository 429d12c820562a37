-- Of which workloads are runs expected, and when came the last one? One row per watched folder and workload.
-- Parameters: now_ns: what a clock says of later than this is not believed
-- Columns: id; folder_id; folder, host; workload (empty: any); every_ns; first_seen_ns; told_ns: the last run, or
--   first_seen_ns, of the gap that was told of last (NULL: none was); arrived_ns: when the last new run came in through
--   the folder (NULL: none did); started_ns: when the last active run of the workload started (NULL: unknown);
--   coming_ns: when the newest profile was first seen that is on its way in (NULL: none is)
WITH came AS (
    SELECT
        e.id,
        MAX(i.arrived_ns) AS arrived_ns,
        MAX(
            CASE WHEN i.gone_ns IS NULL AND i.state IN ('waiting', 'ready', 'working') THEN i.first_seen_ns END
        ) AS coming_ns
    FROM expectation AS e
    INNER JOIN inbox AS i ON e.folder_id = i.folder_id AND (e.workload = '' OR e.workload = i.workload)
    GROUP BY e.id
),

started AS (
    SELECT
        w.name AS workload,
        MAX(r.started_at_ns) AS started_ns
    FROM run AS r
    INNER JOIN workload AS w ON r.workload_id = w.id
    WHERE r.state = 'active' AND r.started_at_ns <= :now_ns
    GROUP BY w.name
)

SELECT
    e.id,
    e.folder_id,
    f.path AS folder,
    f.host,
    e.workload,
    e.every_ns,
    e.first_seen_ns,
    e.told_ns,
    c.arrived_ns,
    s.started_ns,
    c.coming_ns
FROM expectation AS e
INNER JOIN watched_folder AS f ON e.folder_id = f.id
LEFT JOIN came AS c ON e.id = c.id
LEFT JOIN started AS s ON e.workload = s.workload
ORDER BY f.path, f.host, e.workload
