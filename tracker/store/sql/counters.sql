-- What else did the profiler count? One row per grain, source, thing and attribute.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0); by_stage, by_rank, by_step (1: keep them apart)
-- Columns: run_id, stage (NULL: none, or not asked for), rank, step (meaningless unless asked for);
--   source: the profiler's table; name: what was measured; attribute: the measurement, with its unit;
--   calls: how many values; mean: over those of which it is known, NULL of none; min, max: of one
WITH picked AS (
    SELECT
        d.run_id,
        CASE WHEN :by_stage = 1 THEN COALESCE(c.stage, -1) ELSE -1 END AS stage,
        CASE WHEN :by_rank = 1 THEN d.rank ELSE -1 END AS rank,
        CASE WHEN :by_step = 1 THEN d.step ELSE -1 END AS step,
        d.source_id,
        d.name_id,
        d.attribute_id,
        d.calls,
        d.mean,
        d.min,
        d.max
    FROM counter AS d
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND (:all_ranks = 1 OR d.rank IN :ranks)
        AND (:in_steps = 0 OR d.step >= 0)
        AND (:all_steps = 1 OR d.step IN :steps)
),

summed AS (
    SELECT
        p.run_id,
        p.stage,
        p.rank,
        p.step,
        p.source_id,
        p.name_id,
        p.attribute_id,
        CASE WHEN COUNT(p.calls) = COUNT(*) THEN CAST(SUM(p.calls) AS BIGINT) END AS calls,
        SUM(p.mean * p.calls) / NULLIF(SUM(CASE WHEN p.mean IS NOT NULL THEN p.calls END), 0) AS mean,
        MIN(p.min) AS min,
        MAX(p.max) AS max
    FROM picked AS p
    GROUP BY p.run_id, p.stage, p.rank, p.step, p.source_id, p.name_id, p.attribute_id
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.step,
    o.text AS source,
    n.text AS name,
    a.text AS attribute,
    s.calls,
    s.mean,
    s.min,
    s.max
FROM summed AS s
INNER JOIN detail_text AS o ON s.source_id = o.id
INNER JOIN detail_text AS n ON s.name_id = n.id
INNER JOIN detail_text AS a ON s.attribute_id = a.id
ORDER BY o.text, n.text, a.text, s.run_id, s.stage, s.rank, s.step
