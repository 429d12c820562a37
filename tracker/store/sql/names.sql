-- Which names of this kind begin so? One row per name, the first 200.
-- Parameters: kind (version, workload, branch, run, series, finding, device); pattern (LIKE, ! escapes); workload (its
--   name, with its branches; NULL = all)
-- Columns: name (of a branch: of its workload)
SELECT found.name
FROM (
    SELECT v.label AS name
    FROM version AS v
    INNER JOIN workload AS w ON v.workload_id = w.id
    LEFT JOIN workload AS m ON w.main_id = m.id
    WHERE
        :kind = 'version'
        AND (CAST(:workload AS TEXT) IS NULL OR :workload IN (w.name, m.name))
        AND w.id NOT IN (
            SELECT x.workload_id
            FROM run AS x
            WHERE x.experiment_id IS NOT NULL
        )
    UNION
    SELECT w.name
    FROM workload AS w
    WHERE :kind = 'workload' AND w.main_id IS NULL
    UNION
    SELECT w.name
    FROM workload AS w
    WHERE
        :kind = 'branch'
        AND w.main_id IS NOT NULL
        AND w.id NOT IN (
            SELECT x.workload_id
            FROM run AS x
            WHERE x.experiment_id IS NOT NULL
        )
    UNION
    SELECT d.model AS name
    FROM device AS d
    WHERE :kind = 'device'
    UNION
    SELECT CAST(r.id AS TEXT) AS name
    FROM run AS r
    WHERE :kind = 'run' AND r.state = 'active'
    UNION
    SELECT s.name
    FROM series AS s
    INNER JOIN workload AS w ON s.workload_id = w.id
    WHERE
        :kind = 'series'
        AND w.id NOT IN (
            SELECT x.workload_id
            FROM run AS x
            WHERE x.experiment_id IS NOT NULL
        )
        AND (CAST(:workload AS TEXT) IS NULL OR w.name = :workload)
    UNION
    SELECT CAST(f.id AS TEXT) AS name
    FROM finding AS f
    WHERE :kind = 'finding' AND f.state <> 'withdrawn'
    UNION
    SELECT 'I-' || CAST(i.id AS TEXT) AS name
    FROM incident AS i
    WHERE :kind = 'finding'
) AS found
WHERE found.name LIKE :pattern ESCAPE '!'
ORDER BY found.name
LIMIT 200
