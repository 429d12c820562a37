-- What did the collectives move over which link? One row per grain, collective, transport, pair of ranks and packet
-- size.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0); by_stage, by_rank, by_step (1: keep them apart)
-- Columns: run_id, stage (NULL: none, or not asked for), rank, step (meaningless unless asked for);
--   kind, group_role, group_size (NULL: unknown), data_type, size_class_bytes (NULL: unknown): the collective;
--   transport; source_rank, target_rank (NULL: all links together); packet_bytes (NULL: packets of all sizes together);
--   calls; packets; bytes; transit_ns: NULL where not known of every row; large_packet_ratio: share of large packets,
--   weighted by bytes.
--   The same bytes stand in several rows: those of all links or sizes, and those of single ones.
WITH picked AS (
    SELECT
        d.run_id,
        CASE WHEN :by_stage = 1 THEN COALESCE(c.stage, -1) ELSE -1 END AS stage,
        CASE WHEN :by_rank = 1 THEN d.rank ELSE -1 END AS rank,
        CASE WHEN :by_step = 1 THEN m.step ELSE -1 END AS step,
        m.kind_id,
        m.process_group_id,
        m.data_type_id,
        m.size_class_bytes,
        d.transport_id,
        d.source,
        d.target,
        d.packet_bytes,
        d.calls,
        d.packets,
        d.bytes,
        d.transit_ns,
        d.large_packet_ratio,
        CASE WHEN d.large_packet_ratio IS NULL THEN 0 ELSE COALESCE(d.bytes, 0) END AS weight
    FROM communication_link AS d
    INNER JOIN communication AS m ON d.run_id = m.run_id AND d.rank = m.rank AND d.communication = m.ordinal
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND (:all_ranks = 1 OR d.rank IN :ranks)
        AND (:in_steps = 0 OR m.step >= 0)
        AND (:all_steps = 1 OR m.step IN :steps)
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
        p.transport_id,
        p.source,
        p.target,
        p.packet_bytes,
        COALESCE(SUM(p.bytes), -1) AS known_bytes,
        CAST(SUM(p.calls) AS BIGINT) AS calls,
        CASE WHEN COUNT(p.packets) = COUNT(*) THEN CAST(SUM(p.packets) AS BIGINT) END AS packets,
        CASE WHEN COUNT(p.bytes) = COUNT(*) THEN CAST(SUM(p.bytes) AS BIGINT) END AS bytes,
        CASE WHEN COUNT(p.transit_ns) = COUNT(*) THEN CAST(SUM(p.transit_ns) AS BIGINT) END AS transit_ns,
        CASE
            WHEN SUM(p.weight) > 0
                THEN SUM(p.large_packet_ratio * p.weight) / CAST(SUM(p.weight) AS DOUBLE PRECISION)
            ELSE AVG(p.large_packet_ratio)
        END AS large_packet_ratio
    FROM picked AS p
    GROUP BY
        p.run_id, p.stage, p.rank, p.step, p.kind_id, p.process_group_id, p.data_type_id, p.size_class_bytes,
        p.transport_id, p.source, p.target, p.packet_bytes
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
    r.text AS transport,
    NULLIF(s.source, -1) AS source_rank,
    NULLIF(s.target, -1) AS target_rank,
    NULLIF(s.packet_bytes, -1) AS packet_bytes,
    s.calls,
    s.packets,
    s.bytes,
    s.transit_ns,
    s.large_packet_ratio
FROM summed AS s
INNER JOIN process_group AS g ON s.process_group_id = g.id
INNER JOIN detail_text AS k ON s.kind_id = k.id
INNER JOIN detail_text AS y ON s.data_type_id = y.id
INNER JOIN detail_text AS r ON s.transport_id = r.id
ORDER BY
    s.known_bytes DESC,
    k.text, g.role, g.size, y.text, s.size_class_bytes, r.text, s.source, s.target, s.packet_bytes,
    s.run_id, s.stage, s.rank, s.step
