-- Which functions of the device runtime and driver were called? One row per grain and function.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0); by_stage, by_rank, by_step (1: keep them apart)
-- Columns: run_id, stage (NULL: none, or not asked for), rank, step (meaningless unless asked for);
--   level, name; calls; total_ns, self_ns: host time; min_ns, max_ns: of one call. A sum is NULL where it is
--   not known of every row
WITH picked AS (
    SELECT
        d.run_id,
        CASE WHEN :by_stage = 1 THEN COALESCE(c.stage, -1) ELSE -1 END AS stage,
        CASE WHEN :by_rank = 1 THEN d.rank ELSE -1 END AS rank,
        CASE WHEN :by_step = 1 THEN d.step ELSE -1 END AS step,
        d.level_id,
        d.name_id,
        d.calls,
        d.total_ns,
        d.self_ns,
        d.min_ns,
        d.max_ns
    FROM api AS d
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
        p.level_id,
        p.name_id,
        COALESCE(SUM(p.total_ns), -1) AS known_ns,
        CASE WHEN COUNT(p.calls) = COUNT(*) THEN CAST(SUM(p.calls) AS BIGINT) END AS calls,
        CASE WHEN COUNT(p.total_ns) = COUNT(*) THEN CAST(SUM(p.total_ns) AS BIGINT) END AS total_ns,
        CASE WHEN COUNT(p.self_ns) = COUNT(*) THEN CAST(SUM(p.self_ns) AS BIGINT) END AS self_ns,
        MIN(p.min_ns) AS min_ns,
        MAX(p.max_ns) AS max_ns
    FROM picked AS p
    GROUP BY p.run_id, p.stage, p.rank, p.step, p.level_id, p.name_id
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.step,
    l.text AS level,
    n.text AS name,
    s.calls,
    s.total_ns,
    s.self_ns,
    s.min_ns,
    s.max_ns
FROM summed AS s
INNER JOIN detail_text AS l ON s.level_id = l.id
INNER JOIN detail_text AS n ON s.name_id = n.id
ORDER BY s.known_ns DESC, l.text, n.text, s.run_id, s.stage, s.rank, s.step
