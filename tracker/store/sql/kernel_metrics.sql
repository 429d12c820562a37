-- What did the profiler measure in each kernel? One row per grain, kernel (without types and formats) and metric.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0);
--   by_stage, by_rank (1: keep them apart); measurements are of the whole capture, so there is no grain of steps
-- Columns: run_id, stage (NULL: none, or not asked for), rank (meaningless unless asked for);
--   name, canonical_name, type, core_type, input_shapes: the kernel; metric: as the profiler spells it, with its unit;
--   calls: that were measured; mean: over those of which it is known, NULL of none; min, max: of one
WITH picked AS (
    SELECT
        d.run_id,
        CASE WHEN :by_stage = 1 THEN COALESCE(c.stage, -1) ELSE -1 END AS stage,
        CASE WHEN :by_rank = 1 THEN d.rank ELSE -1 END AS rank,
        d.kernel_key_id,
        d.metric_id,
        d.calls,
        d.mean,
        d.min,
        d.max
    FROM kernel_metric AS d
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND (:all_ranks = 1 OR d.rank IN :ranks)
),

summed AS (
    SELECT
        p.run_id,
        p.stage,
        p.rank,
        k.name,
        k.canonical_name,
        k.type,
        k.core_type,
        k.input_shapes,
        p.metric_id,
        CASE WHEN COUNT(p.calls) = COUNT(*) THEN CAST(SUM(p.calls) AS BIGINT) END AS calls,
        SUM(p.mean * p.calls) / NULLIF(SUM(CASE WHEN p.mean IS NOT NULL THEN p.calls END), 0) AS mean,
        MIN(p.min) AS min,
        MAX(p.max) AS max
    FROM picked AS p
    INNER JOIN kernel_key AS k ON p.kernel_key_id = k.id
    GROUP BY
        p.run_id, p.stage, p.rank, k.name, k.canonical_name, k.type, k.core_type, k.input_shapes, p.metric_id
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.name,
    s.canonical_name,
    s.type,
    s.core_type,
    s.input_shapes,
    m.text AS metric,
    s.calls,
    s.mean,
    s.min,
    s.max
FROM summed AS s
INNER JOIN detail_text AS m ON s.metric_id = m.id
ORDER BY
    s.name, s.canonical_name, s.type, s.core_type, s.input_shapes, m.text, s.run_id, s.stage, s.rank
