-- What did the runs of a workload reach? One row per active run that waits for no rank, in the order of versions.
-- Parameters: workload (name)
-- A run with a log that was made without a profiler beside its trace has the step and the throughput of that log.
-- Columns: run_id, configuration_id, device_id; version, ordinal: its place; commit_id, pinned, version_note: of the
--   version; note: of the run; vendor, device (model); ranks: that came; world_size (NULL: unknown); settings: of the
--   profiler on one of its ranks, JSON; run_step_ns, run_e2e_ns, samples_per_second, run_peak_bytes: its samples,
--   NULL: not stated; step_kind: of which steps the step is, those by which the newest version of its track was judged;
--   step_way, throughput_way: how that was measured, a word of series.WAYS;
--   throughput_unit: "" where its source names none
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
        AND r.ranks_awaited IS NULL
        AND w.name = :workload
),

ways AS (
    SELECT
        d.run_id,
        s.metric,
        s.part,
        s.step_kind,
        s.input_shapes,
        d.value,
        ROW_NUMBER() OVER (
            PARTITION BY d.run_id, s.metric
            ORDER BY s.step_kind DESC, CASE s.part WHEN 'unprofiled' THEN 0 WHEN '' THEN 1 ELSE 2 END, d.value DESC
        ) AS place
    FROM series AS s
    INNER JOIN workload AS w ON s.workload_id = w.id
    INNER JOIN sample AS d ON s.id = d.series_id
    WHERE
        w.name = :workload
        AND s.kind = 'run'
        AND s.step_kind IN ('', COALESCE(
            (
                SELECT j.step_kind
                FROM judged_version AS j
                INNER JOIN version AS n ON j.version_id = n.id
                WHERE
                    j.workload_id = s.workload_id
                    AND j.configuration_id = s.configuration_id
                    AND j.device_id = s.device_id
                ORDER BY n.ordinal DESC, n.id DESC
                LIMIT 1
            ), ''
        ))
        AND s.metric IN ('duration_ns', 'e2e_ns', 'samples_per_second', 'peak_allocated_bytes')
),

of_series AS (
    SELECT
        y.run_id,
        MAX(CASE WHEN y.metric = 'duration_ns' THEN y.value END) AS run_step_ns,
        MAX(CASE WHEN y.metric = 'duration_ns' THEN y.part END) AS step_way,
        MAX(CASE WHEN y.metric = 'duration_ns' THEN y.step_kind END) AS step_kind,
        MAX(CASE WHEN y.metric = 'e2e_ns' THEN y.value END) AS run_e2e_ns,
        MAX(CASE WHEN y.metric = 'samples_per_second' THEN y.value END) AS samples_per_second,
        MAX(CASE WHEN y.metric = 'samples_per_second' THEN y.part END) AS throughput_way,
        MAX(CASE WHEN y.metric = 'samples_per_second' THEN y.input_shapes END) AS throughput_unit,
        MAX(CASE WHEN y.metric = 'peak_allocated_bytes' THEN y.value END) AS run_peak_bytes
    FROM ways AS y
    WHERE y.place = 1
    GROUP BY y.run_id
),

of_captures AS (
    SELECT
        c.run_id,
        COUNT(*) AS ranks,
        MIN(c.settings) AS settings
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
    s.run_step_ns,
    s.step_way,
    s.step_kind,
    s.run_e2e_ns,
    s.samples_per_second,
    s.throughput_way,
    s.throughput_unit,
    s.run_peak_bytes
FROM picked AS p
INNER JOIN of_captures AS c ON p.id = c.run_id
LEFT JOIN of_series AS s ON p.id = s.run_id
ORDER BY p.ordinal, p.version, p.id
