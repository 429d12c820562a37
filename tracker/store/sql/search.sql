-- What has this in its name? One row per thing of this kind, those with exactly this name first, then in order of their
-- names, at most so many.
-- Parameters: kind (workload, version, device, run, series, finding, incident); pattern (LIKE in lower case, !
--   escapes); exact: the name in lower case, and within: a pattern of it behind a namespace; run, finding, incident
--   (numbers, -1 = none); most (rows)
-- Columns: name: of a finding with its shapes; workload (its name); detail: of a version its commit, of a run and an
--   incident its version, of a series its kind, of a finding its version and state; number: of the run or finding
SELECT
    found.name,
    found.workload,
    found.detail,
    found.number
FROM (
    SELECT
        v.label AS name,
        w.name AS workload,
        COALESCE(v.commit_id, '') AS detail,
        0 AS number
    FROM version AS v
    -- the linter takes w for that of another SELECT
    INNER JOIN workload AS w ON v.workload_id = w.id  -- noqa: ST09
    WHERE
        :kind = 'version'
        AND w.id NOT IN (
            SELECT x.workload_id
            FROM run AS x
            WHERE x.experiment_id IS NOT NULL
        )
        AND (LOWER(v.label) LIKE :pattern ESCAPE '!' OR LOWER(v.commit_id) LIKE :pattern ESCAPE '!')
    UNION
    SELECT
        own.name,
        own.name AS workload,
        '' AS detail,
        0 AS number
    FROM workload AS own
    WHERE
        :kind = 'workload'
        AND own.id NOT IN (
            SELECT x.workload_id
            FROM run AS x
            WHERE x.experiment_id IS NOT NULL
        )
        AND LOWER(own.name) LIKE :pattern ESCAPE '!'
    UNION
    SELECT
        TRIM(d.vendor || ' ' || d.model) AS name,
        w.name AS workload,
        '' AS detail,
        0 AS number
    FROM run AS r
    INNER JOIN device AS d ON r.device_id = d.id
    INNER JOIN workload AS w ON r.workload_id = w.id
    WHERE
        :kind = 'device'
        AND r.experiment_id IS NULL
        AND LOWER(d.vendor || ' ' || d.model) LIKE :pattern ESCAPE '!'
    UNION
    SELECT
        'run:' || CAST(r.id AS TEXT) AS name,
        w.name AS workload,
        v.label AS detail,
        r.id AS number
    FROM run AS r
    INNER JOIN version AS v ON r.version_id = v.id
    INNER JOIN workload AS w ON r.workload_id = w.id
    WHERE :kind = 'run' AND r.id = :run
    UNION
    SELECT
        s.name,
        w.name AS workload,
        s.kind AS detail,
        0 AS number
    FROM series AS s
    INNER JOIN workload AS w ON s.workload_id = w.id
    WHERE
        :kind = 'series'
        AND w.id NOT IN (
            SELECT x.workload_id
            FROM run AS x
            WHERE x.experiment_id IS NOT NULL
        )
        AND LOWER(s.name) LIKE :pattern ESCAPE '!'
    UNION
    SELECT
        CASE WHEN s.input_shapes = '' THEN s.name ELSE s.name || ' ' || s.input_shapes END AS name,
        w.name AS workload,
        v.label || ', ' || f.state AS detail,
        f.id AS number
    FROM finding AS f
    INNER JOIN series AS s ON f.series_id = s.id
    INNER JOIN version AS v ON f.first_version_id = v.id
    INNER JOIN workload AS w ON f.workload_id = w.id
    INNER JOIN incident AS i
        ON
            f.workload_id = i.workload_id
            AND f.configuration_id = i.configuration_id
            AND f.device_id = i.device_id
            AND f.first_version_id = i.first_version_id
    WHERE
        :kind = 'finding'
        AND f.state <> 'withdrawn'
        AND (LOWER(s.name) LIKE :pattern ESCAPE '!' OR f.id = :finding OR i.id = :incident)
    UNION
    SELECT
        'I-' || CAST(i.id AS TEXT) AS name,
        w.name AS workload,
        v.label AS detail,
        0 AS number
    FROM incident AS i
    INNER JOIN version AS v ON i.first_version_id = v.id
    INNER JOIN workload AS w ON i.workload_id = w.id
    WHERE :kind = 'incident' AND i.id = :incident
) AS found
ORDER BY
    CASE
        WHEN LOWER(found.name) = :exact OR LOWER(found.name) LIKE :within ESCAPE '!' THEN 0
        ELSE 1
    END,
    found.name, found.workload, found.detail, found.number
LIMIT :most
