-- Which runs are there? One row per run, the newest first.
-- Parameters: all_runs (1: yes), run_ids (list, read when all_runs = 0); version; workload: its name, with its branches
--   (both NULL = all);
--   device (pattern of vendor and model in lower case without blanks, - and _, NULL = all);
--   tag_key, tag_value (NULL = all); words (a JSON object whose keys are patterns of LIKE in lower case, ! escapes:
--   each fits the number, a label, a tag or a file of the run); state (NULL = all); row_limit (-1 = all)
-- Columns: run_id; workload, version, device (model), vendor, configuration (text); state, state_reason;
--   started_at_ns: UTC, NULL: unknown; ranks: that came; ranks_expected: that it should have;
--   ranks_awaited: the same, while it has fewer and is not judged, else NULL; world_size (NULL: unknown);
--   steps: distinct ones; e2e_ns: mean of the ranks; step_ns: its sample, in whole ns, without a profiler where
--   that is known, NULL: unknown, or of several kinds;
--   commit_id (of the version); note; rules_version: of the rules that made names and categories, NULL: unknown
WITH picked AS (
    SELECT
        r.id,
        r.state,
        r.state_reason,
        r.started_at_ns,
        r.ranks_expected,
        r.ranks_awaited,
        r.world_size,
        r.note,
        r.rules_version,
        r.workload_id,
        r.configuration_id,
        r.device_id,
        w.name AS workload,
        v.label AS version,
        v.commit_id,
        d.model AS device,
        d.vendor,
        g.title AS configuration
    FROM run AS r
    INNER JOIN workload AS w ON r.workload_id = w.id
    INNER JOIN version AS v ON r.version_id = v.id
    INNER JOIN device AS d ON r.device_id = d.id
    INNER JOIN configuration AS g ON r.configuration_id = g.id
    LEFT JOIN workload AS m ON w.main_id = m.id
    WHERE
        (:all_runs = 1 OR r.id IN :run_ids)
        AND (CAST(:version AS TEXT) IS NULL OR v.label = :version)
        AND (CAST(:workload AS TEXT) IS NULL OR :workload IN (w.name, m.name))
        AND (
            CAST(:device AS TEXT) IS NULL
            OR REPLACE(REPLACE(REPLACE(LOWER(d.vendor || d.model), ' ', ''), '-', ''), '_', '')
            LIKE :device ESCAPE '!'
        )
        AND (CAST(:state AS TEXT) IS NULL OR r.state = :state)
        AND (
            CAST(:tag_key AS TEXT) IS NULL
            OR EXISTS (
                SELECT 1
                FROM run_fact AS f
                WHERE
                    f.run_id = r.id
                    AND f.kind = 'tag'
                    AND f.key = :tag_key
                    AND (CAST(:tag_value AS TEXT) IS NULL OR f.value = :tag_value)
            )
        )
        AND NOT EXISTS (
            SELECT 1
            FROM JSON_EACH(:words) AS e
            WHERE
                LOWER(
                    'run:' || CAST(r.id AS TEXT) || ' ' || w.name || ' ' || v.label || ' ' || d.vendor || ' ' || d.model
                    || ' ' || g.title || ' ' || COALESCE(v.commit_id, '') || ' ' || COALESCE(r.note, '')
                ) NOT LIKE e.key ESCAPE '!'
                AND NOT EXISTS (
                    SELECT 1
                    FROM run_fact AS a
                    WHERE a.run_id = r.id AND a.kind = 'tag' AND LOWER(a.key || '=' || a.value) LIKE e.key ESCAPE '!'
                )
                AND NOT EXISTS (
                    SELECT 1
                    FROM source AS o
                    WHERE o.run_id = r.id AND LOWER(o.path) LIKE e.key ESCAPE '!'
                )
        )
    ORDER BY r.id DESC
    LIMIT CASE WHEN :row_limit >= 0 THEN :row_limit ELSE 9223372036854775807 END
),

captures AS (
    SELECT
        c.run_id,
        COUNT(*) AS ranks,
        CAST(SUM(c.e2e_ns) AS BIGINT) / COUNT(c.e2e_ns) AS e2e_ns
    FROM capture AS c
    WHERE c.run_id IN (SELECT p.id FROM picked AS p)
    GROUP BY c.run_id
),

markers AS (
    SELECT
        s.run_id,
        CAST(SUM(s.steps) AS BIGINT) AS steps,
        COUNT(DISTINCT s.kind) AS kinds
    FROM (
        SELECT
            d.run_id,
            d.step,
            MAX(COALESCE(d.steps, 1)) AS steps,
            MAX(d.kind) AS kind
        FROM step AS d
        WHERE d.run_id IN (SELECT p.id FROM picked AS p)
        GROUP BY d.run_id, d.step
    ) AS s
    GROUP BY s.run_id
)

SELECT
    p.id AS run_id,
    p.workload,
    p.version,
    p.device,
    p.vendor,
    p.configuration,
    p.state,
    p.state_reason,
    p.started_at_ns,
    t.ranks,
    COALESCE(p.ranks_awaited, p.ranks_expected, t.ranks) AS ranks_expected,
    p.ranks_awaited,
    p.world_size,
    COALESCE(m.steps, 0) AS steps,
    t.e2e_ns,
    -- steps of several kinds have no time in common
    CASE WHEN COALESCE(m.kinds, 0) <= 1 THEN (
        SELECT
            CAST(
                ROUND(
                    COALESCE(
                        MAX(CASE WHEN s.part = 'unprofiled' THEN d.value END),
                        MAX(CASE WHEN s.part = '' THEN d.value END),
                        MAX(d.value)
                    )
                ) AS BIGINT
            )
        FROM series AS s
        INNER JOIN sample AS d ON s.id = d.series_id
        WHERE
            s.workload_id = p.workload_id
            AND s.configuration_id = p.configuration_id
            AND s.device_id = p.device_id
            AND s.kind = 'run'
            AND s.name = 'step'
            AND s.step_kind = ''
            AND d.run_id = p.id
    ) END AS step_ns,
    p.commit_id,
    p.note,
    p.rules_version
FROM picked AS p
INNER JOIN captures AS t ON p.id = t.run_id
LEFT JOIN markers AS m ON p.id = m.run_id
ORDER BY p.id DESC
