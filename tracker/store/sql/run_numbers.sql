-- What did the runs of a workload reach? One row per active run, in the order of versions.
-- Parameters: workload (name)
-- Columns: run_id, configuration_id, device_id; version, ordinal: its place; commit_id, pinned, version_note: of the
--   version; note: of the run; vendor, device (model); ranks: that came; world_size (NULL: unknown); settings: of the
--   profiler on one of its ranks, JSON; mean_step_ns, mean_e2e_ns: mean over the steps of all ranks; median_step_ns,
--   samples_per_second: the median over them, a row that is the mean of N steps N times, of the latter what the ranks
--   say on average where no step says it; NULL: not said; peak_allocated_bytes: of the rank with most
WITH picked AS (
    SELECT
        r.id,
        r.configuration_id,
        r.device_id,
        r.note,
        r.world_size,
        v.label AS version,
        v.ordinal,
        v.commit_id,
        v.pinned,
        v.note AS version_note,
        d.vendor,
        d.model AS device
    FROM run AS r
    INNER JOIN workload AS w ON r.workload_id = w.id
    INNER JOIN version AS v ON r.version_id = v.id
    INNER JOIN device AS d ON r.device_id = d.id
    WHERE
        r.state = 'active'
        AND w.name = :workload
),

of_steps AS (
    SELECT
        s.run_id,
        CAST(SUM(s.duration_ns * COALESCE(s.steps, 1)) AS DOUBLE PRECISION)
        / SUM(CASE WHEN s.duration_ns IS NOT NULL THEN COALESCE(s.steps, 1) END) AS mean_step_ns,
        CAST(SUM(s.e2e_ns * COALESCE(s.steps, 1)) AS DOUBLE PRECISION)
        / SUM(CASE WHEN s.e2e_ns IS NOT NULL THEN COALESCE(s.steps, 1) END) AS mean_e2e_ns
    FROM step AS s
    WHERE s.run_id IN (SELECT p.id FROM picked AS p)
    GROUP BY s.run_id
),

measured AS (
    SELECT
        s.run_id,
        'step' AS measure,
        CAST(s.duration_ns AS DOUBLE PRECISION) AS value,
        COALESCE(s.steps, 1) AS steps
    FROM step AS s
    WHERE
        s.duration_ns IS NOT NULL
        AND s.run_id IN (SELECT p.id FROM picked AS p)
    UNION ALL
    SELECT
        s.run_id,
        'throughput' AS measure,
        s.samples_per_second AS value,
        COALESCE(s.steps, 1) AS steps
    FROM step AS s
    WHERE
        s.samples_per_second IS NOT NULL
        AND s.run_id IN (SELECT p.id FROM picked AS p)
),

placed AS (
    SELECT
        o.run_id,
        o.measure,
        o.value,
        SUM(o.steps) OVER (
            PARTITION BY o.run_id, o.measure
            ORDER BY o.value
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS place,
        SUM(o.steps) OVER (PARTITION BY o.run_id, o.measure) AS number
    FROM measured AS o
),

-- the one in the middle, or the two around it: a row stands for as many places as steps, the last of them `place`
middle AS (
    SELECT
        m.run_id,
        m.measure,
        MIN(CASE WHEN 2 * m.place >= m.number THEN m.value END) AS lower_value,
        MIN(CASE WHEN 2 * m.place > m.number THEN m.value END) AS upper_value
    FROM placed AS m
    GROUP BY m.run_id, m.measure
),

medians AS (
    SELECT
        m.run_id,
        MAX(CASE WHEN m.measure = 'step' THEN (m.lower_value + m.upper_value) / 2 END) AS median_step_ns,
        MAX(CASE WHEN m.measure = 'throughput' THEN (m.lower_value + m.upper_value) / 2 END) AS samples_per_second
    FROM middle AS m
    GROUP BY m.run_id
),

of_captures AS (
    SELECT
        c.run_id,
        COUNT(*) AS ranks,
        MIN(c.settings) AS settings,
        AVG(c.samples_per_second) AS samples_per_second,
        MAX(c.peak_allocated_bytes) AS peak_allocated_bytes
    FROM capture AS c
    WHERE c.run_id IN (SELECT p.id FROM picked AS p)
    GROUP BY c.run_id
)

SELECT
    p.id AS run_id,
    p.configuration_id,
    p.device_id,
    p.version,
    p.ordinal,
    p.commit_id,
    p.pinned,
    p.version_note,
    p.note,
    p.vendor,
    p.device,
    c.ranks,
    p.world_size,
    c.settings,
    s.mean_step_ns,
    s.mean_e2e_ns,
    m.median_step_ns,
    COALESCE(m.samples_per_second, c.samples_per_second) AS samples_per_second,
    c.peak_allocated_bytes
FROM picked AS p
INNER JOIN of_captures AS c ON p.id = c.run_id
LEFT JOIN of_steps AS s ON p.id = s.run_id
LEFT JOIN medians AS m ON p.id = m.run_id
ORDER BY p.ordinal, p.version, p.id
