-- Which collectives ran, on what groups and sizes? One row per grain and collective.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0); by_stage, by_rank, by_step (1: keep them apart)
-- Columns: run_id, stage (NULL: none, or not asked for), rank, step (meaningless unless asked for);
--   kind, group_role, group_size (NULL: unknown), data_type, size_class_bytes (NULL: unknown); calls; bytes: payload;
--   total_ns, min_ns, max_ns: device time, of all calls and of one; transit_ns, wait_ns, synchronization_ns, idle_ns:
--   parts of it; exposed_ns: not hidden by compute; exposed_wait_ns: the waiting in it; split_by: `ranks` where transit
--   and wait are what all ranks of the group tell, which know no other part, else `profiler`, NULL where neither is
--   known; exposed_wait_ns is the profiler's where the ranks cannot tell it. A sum is NULL where it is not known of
--   every row
WITH picked AS (
    SELECT
        d.run_id,
        CASE WHEN :by_stage = 1 THEN COALESCE(c.stage, -1) ELSE -1 END AS stage,
        CASE WHEN :by_rank = 1 THEN d.rank ELSE -1 END AS rank,
        CASE WHEN :by_step = 1 THEN d.step ELSE -1 END AS step,
        d.kind_id,
        d.process_group_id,
        d.data_type_id,
        d.size_class_bytes,
        d.calls,
        d.bytes,
        d.total_ns,
        d.min_ns,
        d.max_ns,
        d.transit_ns,
        d.wait_ns,
        d.synchronization_ns,
        d.idle_ns,
        d.exposed_ns,
        d.exposed_wait_ns,
        d.ranks_transit_ns,
        d.ranks_wait_ns,
        d.ranks_exposed_wait_ns
    FROM communication AS d
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
        p.kind_id,
        p.process_group_id,
        p.data_type_id,
        p.size_class_bytes,
        COALESCE(SUM(p.total_ns), -1) AS known_ns,
        CASE WHEN COUNT(p.calls) = COUNT(*) THEN CAST(SUM(p.calls) AS BIGINT) END AS calls,
        CASE WHEN COUNT(p.bytes) = COUNT(*) THEN CAST(SUM(p.bytes) AS BIGINT) END AS bytes,
        CASE WHEN COUNT(p.total_ns) = COUNT(*) THEN CAST(SUM(p.total_ns) AS BIGINT) END AS total_ns,
        MIN(p.min_ns) AS min_ns,
        MAX(p.max_ns) AS max_ns,
        CASE
            WHEN COUNT(p.ranks_wait_ns) = COUNT(*) THEN CAST(SUM(p.ranks_transit_ns) AS BIGINT)
            WHEN COUNT(p.transit_ns) = COUNT(*) THEN CAST(SUM(p.transit_ns) AS BIGINT)
        END AS transit_ns,
        CASE
            WHEN COUNT(p.ranks_wait_ns) = COUNT(*) THEN CAST(SUM(p.ranks_wait_ns) AS BIGINT)
            WHEN COUNT(p.wait_ns) = COUNT(*) THEN CAST(SUM(p.wait_ns) AS BIGINT)
        END AS wait_ns,
        CASE
            WHEN COUNT(p.ranks_wait_ns) = COUNT(*) THEN NULL
            WHEN COUNT(p.synchronization_ns) = COUNT(*) THEN CAST(SUM(p.synchronization_ns) AS BIGINT)
        END AS synchronization_ns,
        CASE
            WHEN COUNT(p.ranks_wait_ns) = COUNT(*) THEN NULL
            WHEN COUNT(p.idle_ns) = COUNT(*) THEN CAST(SUM(p.idle_ns) AS BIGINT)
        END AS idle_ns,
        CASE WHEN COUNT(p.exposed_ns) = COUNT(*) THEN CAST(SUM(p.exposed_ns) AS BIGINT) END AS exposed_ns,
        CASE
            WHEN COUNT(p.ranks_exposed_wait_ns) = COUNT(*) THEN CAST(SUM(p.ranks_exposed_wait_ns) AS BIGINT)
            WHEN COUNT(p.exposed_wait_ns) = COUNT(*) THEN CAST(SUM(p.exposed_wait_ns) AS BIGINT)
        END AS exposed_wait_ns,
        CASE
            WHEN COUNT(p.ranks_wait_ns) = COUNT(*) THEN 'ranks'
            WHEN COUNT(p.wait_ns) = COUNT(*) OR COUNT(p.transit_ns) = COUNT(*) THEN 'profiler'
        END AS split_by
    FROM picked AS p
    GROUP BY p.run_id, p.stage, p.rank, p.step, p.kind_id, p.process_group_id, p.data_type_id, p.size_class_bytes
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.step,
    k.text AS kind,
    g.role AS group_role,
    NULLIF(g.size, -1) AS group_size,
    y.text AS data_type,
    NULLIF(s.size_class_bytes, -1) AS size_class_bytes,
    s.calls,
    s.bytes,
    s.total_ns,
    s.min_ns,
    s.max_ns,
    s.transit_ns,
    s.wait_ns,
    s.synchronization_ns,
    s.idle_ns,
    s.exposed_ns,
    s.exposed_wait_ns,
    s.split_by
FROM summed AS s
INNER JOIN process_group AS g ON s.process_group_id = g.id
INNER JOIN detail_text AS k ON s.kind_id = k.id
INNER JOIN detail_text AS y ON s.data_type_id = y.id
ORDER BY s.known_ns DESC, k.text, g.role, g.size, y.text, s.size_class_bytes, s.run_id, s.stage, s.rank, s.step
