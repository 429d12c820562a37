-- What do the active runs of a line say of these series? One row per series and run, in the order of line_runs.sql.
-- Parameters: series_ids (list)
-- Columns: series_id, run_id; version_id, version: its label; ordinal: its place; started_at_ns: of the run; per_step:
--   the value that is judged; minimum, maximum: over the steps; calls_per_step; rank_spread; steps; intermittent: see
--   the table sample
SELECT
    d.series_id,
    d.run_id,
    v.id AS version_id,
    v.label AS version,
    v.ordinal,
    r.started_at_ns,
    d.value AS per_step,
    d.min AS minimum,
    d.max AS maximum,
    d.calls AS calls_per_step,
    d.rank_spread,
    d.steps,
    d.intermittent
FROM sample AS d
INNER JOIN run AS r ON d.run_id = r.id
INNER JOIN version AS v ON r.version_id = v.id
WHERE
    d.series_id IN :series_ids
    AND r.state = 'active'
ORDER BY
    d.series_id,
    v.ordinal,
    v.id,
    CASE
        WHEN
            COUNT(*) OVER (PARTITION BY d.series_id, v.id)
            = COUNT(r.started_at_ns) OVER (PARTITION BY d.series_id, v.id)
            THEN r.started_at_ns
    END,
    r.id
