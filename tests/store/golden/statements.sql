-- op: sums of a run
SELECT
    d.run_id,
    d.op_key_id,
    d.call_stack_id,
    d.raw_name_id,
    CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
    CASE WHEN COUNT(d.host_total_ns) = COUNT(*) THEN CAST(SUM(d.host_total_ns) AS BIGINT) END AS host_total_ns,
    CASE WHEN COUNT(d.host_self_ns) = COUNT(*) THEN CAST(SUM(d.host_self_ns) AS BIGINT) END AS host_self_ns,
    CASE WHEN COUNT(d.device_total_ns) = COUNT(*) THEN CAST(SUM(d.device_total_ns) AS BIGINT) END AS device_total_ns,
    CASE WHEN COUNT(d.device_self_ns) = COUNT(*) THEN CAST(SUM(d.device_self_ns) AS BIGINT) END AS device_self_ns,
    MIN(d.min_ns) AS min_ns,
    MAX(d.max_ns) AS max_ns,
    MIN(d.host_min_ns) AS host_min_ns,
    MAX(d.host_max_ns) AS host_max_ns,
    CASE WHEN COUNT(d.sum_squares_ns2) = COUNT(*) THEN SUM(d.sum_squares_ns2) END AS sum_squares_ns2,
    CASE WHEN COUNT(d.kernel_count) = COUNT(*) THEN CAST(SUM(d.kernel_count) AS BIGINT) END AS kernel_count,
    CASE WHEN COUNT(d.self_by_quartile_ns) = COUNT(*) THEN CAST(SUM(d.self_by_quartile_ns) AS BIGINT) END AS self_by_quartile_ns,
    CASE WHEN COUNT(d.self_by_median_ns) = COUNT(*) THEN CAST(SUM(d.self_by_median_ns) AS BIGINT) END AS self_by_median_ns
FROM op AS d
WHERE
    d.run_id IN :run_ids
GROUP BY
    d.run_id,
    d.op_key_id,
    d.call_stack_id,
    d.raw_name_id;

-- op: sums by stage, rank, step
SELECT
    d.run_id,
    COALESCE(c.stage, -1) AS stage,
    d.rank,
    d.step,
    d.op_key_id,
    d.call_stack_id,
    d.raw_name_id,
    CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
    CASE WHEN COUNT(d.host_total_ns) = COUNT(*) THEN CAST(SUM(d.host_total_ns) AS BIGINT) END AS host_total_ns,
    CASE WHEN COUNT(d.host_self_ns) = COUNT(*) THEN CAST(SUM(d.host_self_ns) AS BIGINT) END AS host_self_ns,
    CASE WHEN COUNT(d.device_total_ns) = COUNT(*) THEN CAST(SUM(d.device_total_ns) AS BIGINT) END AS device_total_ns,
    CASE WHEN COUNT(d.device_self_ns) = COUNT(*) THEN CAST(SUM(d.device_self_ns) AS BIGINT) END AS device_self_ns,
    MIN(d.min_ns) AS min_ns,
    MAX(d.max_ns) AS max_ns,
    MIN(d.host_min_ns) AS host_min_ns,
    MAX(d.host_max_ns) AS host_max_ns,
    CASE WHEN COUNT(d.sum_squares_ns2) = COUNT(*) THEN SUM(d.sum_squares_ns2) END AS sum_squares_ns2,
    CASE WHEN COUNT(d.kernel_count) = COUNT(*) THEN CAST(SUM(d.kernel_count) AS BIGINT) END AS kernel_count,
    CASE WHEN COUNT(d.self_by_quartile_ns) = COUNT(*) THEN CAST(SUM(d.self_by_quartile_ns) AS BIGINT) END AS self_by_quartile_ns,
    CASE WHEN COUNT(d.self_by_median_ns) = COUNT(*) THEN CAST(SUM(d.self_by_median_ns) AS BIGINT) END AS self_by_median_ns
FROM op AS d
INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
WHERE
    d.run_id IN :run_ids
    AND d.rank IN :ranks
    AND d.step IN :steps
    AND d.step >= 0
GROUP BY
    d.run_id,
    COALESCE(c.stage, -1),
    d.rank,
    d.step,
    d.op_key_id,
    d.call_stack_id,
    d.raw_name_id;

-- op: rows
SELECT
    d.run_id,
    d.rank,
    d.step,
    d.op_key_id,
    d.call_stack_id,
    d.raw_name_id,
    d.calls,
    d.host_total_ns,
    d.host_self_ns,
    d.device_total_ns,
    d.device_self_ns,
    d.min_ns,
    d.max_ns,
    d.host_min_ns,
    d.host_max_ns,
    d.sum_squares_ns2,
    d.kernel_count,
    d.self_by_quartile_ns,
    d.self_by_median_ns
FROM op AS d
WHERE
    d.run_id IN :run_ids
    AND d.rank IN :ranks
    AND d.step IN :steps
    AND d.step >= 0;

-- kernel: sums of a run
SELECT
    d.run_id,
    d.kernel_key_id,
    d.op_key_id,
    d.category_id,
    d.sequence_id,
    CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
    CASE WHEN COUNT(d.total_ns) = COUNT(*) THEN CAST(SUM(d.total_ns) AS BIGINT) END AS total_ns,
    MIN(d.min_ns) AS min_ns,
    MAX(d.max_ns) AS max_ns,
    CASE WHEN COUNT(d.sum_squares_ns2) = COUNT(*) THEN SUM(d.sum_squares_ns2) END AS sum_squares_ns2,
    CASE WHEN COUNT(d.wait_ns) = COUNT(*) THEN CAST(SUM(d.wait_ns) AS BIGINT) END AS wait_ns,
    CASE WHEN COUNT(d.bytes) = COUNT(*) THEN CAST(SUM(d.bytes) AS BIGINT) END AS bytes,
    MAX(d.block_num) AS block_num,
    CASE WHEN COUNT(d.beside_ns) = COUNT(*) THEN CAST(SUM(d.beside_ns) AS BIGINT) END AS beside_ns,
    CASE WHEN COUNT(d.sequence_saved_ns) = COUNT(*) THEN CAST(SUM(d.sequence_saved_ns) AS BIGINT) END AS sequence_saved_ns
FROM kernel AS d
WHERE
    d.run_id IN :run_ids
GROUP BY
    d.run_id,
    d.kernel_key_id,
    d.op_key_id,
    d.category_id,
    d.sequence_id;

-- kernel: sums by stage, rank, step
SELECT
    d.run_id,
    COALESCE(c.stage, -1) AS stage,
    d.rank,
    d.step,
    d.kernel_key_id,
    d.op_key_id,
    d.category_id,
    d.sequence_id,
    CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
    CASE WHEN COUNT(d.total_ns) = COUNT(*) THEN CAST(SUM(d.total_ns) AS BIGINT) END AS total_ns,
    MIN(d.min_ns) AS min_ns,
    MAX(d.max_ns) AS max_ns,
    CASE WHEN COUNT(d.sum_squares_ns2) = COUNT(*) THEN SUM(d.sum_squares_ns2) END AS sum_squares_ns2,
    CASE WHEN COUNT(d.wait_ns) = COUNT(*) THEN CAST(SUM(d.wait_ns) AS BIGINT) END AS wait_ns,
    CASE WHEN COUNT(d.bytes) = COUNT(*) THEN CAST(SUM(d.bytes) AS BIGINT) END AS bytes,
    MAX(d.block_num) AS block_num,
    CASE WHEN COUNT(d.beside_ns) = COUNT(*) THEN CAST(SUM(d.beside_ns) AS BIGINT) END AS beside_ns,
    CASE WHEN COUNT(d.sequence_saved_ns) = COUNT(*) THEN CAST(SUM(d.sequence_saved_ns) AS BIGINT) END AS sequence_saved_ns
FROM kernel AS d
INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
WHERE
    d.run_id IN :run_ids
    AND d.rank IN :ranks
    AND d.step IN :steps
    AND d.step >= 0
GROUP BY
    d.run_id,
    COALESCE(c.stage, -1),
    d.rank,
    d.step,
    d.kernel_key_id,
    d.op_key_id,
    d.category_id,
    d.sequence_id;

-- kernel: rows
SELECT
    d.run_id,
    d.rank,
    d.step,
    d.kernel_key_id,
    d.op_key_id,
    d.category_id,
    d.sequence_id,
    d.calls,
    d.total_ns,
    d.min_ns,
    d.max_ns,
    d.sum_squares_ns2,
    d.wait_ns,
    d.bytes,
    d.block_num,
    d.beside_ns,
    d.sequence_saved_ns
FROM kernel AS d
WHERE
    d.run_id IN :run_ids
    AND d.rank IN :ranks
    AND d.step IN :steps
    AND d.step >= 0;

-- communication: sums of a run
WITH summed AS (
    SELECT
        d.run_id,
        d.kind_id AS kind,
        g.role AS group_role,
        g.size AS group_size,
        d.data_type_id AS data_type,
        d.size_class_bytes,
        CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
        CASE WHEN COUNT(d.bytes) = COUNT(*) THEN CAST(SUM(d.bytes) AS BIGINT) END AS bytes,
        CASE WHEN COUNT(d.total_ns) = COUNT(*) THEN CAST(SUM(d.total_ns) AS BIGINT) END AS total_ns,
        MIN(d.min_ns) AS min_ns,
        MAX(d.max_ns) AS max_ns,
        CASE
            WHEN COUNT(d.ranks_transit_ns) = COUNT(*) THEN CAST(SUM(d.ranks_transit_ns) AS BIGINT)
            WHEN COUNT(d.transit_ns) = COUNT(*) THEN CAST(SUM(d.transit_ns) AS BIGINT)
        END AS transit_ns,
        CASE
            WHEN COUNT(d.ranks_wait_ns) = COUNT(*) THEN CAST(SUM(d.ranks_wait_ns) AS BIGINT)
            WHEN COUNT(d.wait_ns) = COUNT(*) THEN CAST(SUM(d.wait_ns) AS BIGINT)
        END AS wait_ns,
        CASE
            WHEN COUNT(d.ranks_wait_ns) < COUNT(*) AND COUNT(d.synchronization_ns) = COUNT(*) THEN CAST(SUM(d.synchronization_ns) AS BIGINT)
        END AS synchronization_ns,
        CASE
            WHEN COUNT(d.ranks_wait_ns) < COUNT(*) AND COUNT(d.idle_ns) = COUNT(*) THEN CAST(SUM(d.idle_ns) AS BIGINT)
        END AS idle_ns,
        CASE WHEN COUNT(d.exposed_ns) = COUNT(*) THEN CAST(SUM(d.exposed_ns) AS BIGINT) END AS exposed_ns,
        CASE
            WHEN COUNT(d.ranks_exposed_wait_ns) = COUNT(*) THEN CAST(SUM(d.ranks_exposed_wait_ns) AS BIGINT)
            WHEN COUNT(d.exposed_wait_ns) = COUNT(*) THEN CAST(SUM(d.exposed_wait_ns) AS BIGINT)
        END AS exposed_wait_ns,
        CASE
            WHEN COUNT(d.ranks_wait_ns) = COUNT(*) THEN 'ranks'
            WHEN COUNT(d.wait_ns) = COUNT(*) OR COUNT(d.transit_ns) = COUNT(*) THEN 'profiler'
        END AS split_by,
        COALESCE(SUM(d.total_ns), -1) AS largest
    FROM communication AS d
    INNER JOIN process_group AS g ON d.process_group_id = g.id
    WHERE
        d.run_id IN :run_ids
    GROUP BY
        d.run_id,
        d.kind_id,
        g.role,
        g.size,
        d.data_type_id,
        d.size_class_bytes
)

SELECT
    s.run_id,
    t_kind.text AS kind,
    s.group_role,
    NULLIF(s.group_size, -1) AS group_size,
    t_data_type.text AS data_type,
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
LEFT JOIN detail_text AS t_data_type ON s.data_type = t_data_type.id
LEFT JOIN detail_text AS t_kind ON s.kind = t_kind.id
ORDER BY
    s.largest DESC,
    t_kind.text,
    s.group_role,
    s.group_size,
    t_data_type.text,
    s.size_class_bytes,
    s.run_id;

-- communication: sums by stage, rank, step
WITH summed AS (
    SELECT
        d.run_id,
        COALESCE(c.stage, -1) AS stage,
        d.rank,
        d.step,
        d.kind_id AS kind,
        g.role AS group_role,
        g.size AS group_size,
        d.data_type_id AS data_type,
        d.size_class_bytes,
        CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
        CASE WHEN COUNT(d.bytes) = COUNT(*) THEN CAST(SUM(d.bytes) AS BIGINT) END AS bytes,
        CASE WHEN COUNT(d.total_ns) = COUNT(*) THEN CAST(SUM(d.total_ns) AS BIGINT) END AS total_ns,
        MIN(d.min_ns) AS min_ns,
        MAX(d.max_ns) AS max_ns,
        CASE
            WHEN COUNT(d.ranks_transit_ns) = COUNT(*) THEN CAST(SUM(d.ranks_transit_ns) AS BIGINT)
            WHEN COUNT(d.transit_ns) = COUNT(*) THEN CAST(SUM(d.transit_ns) AS BIGINT)
        END AS transit_ns,
        CASE
            WHEN COUNT(d.ranks_wait_ns) = COUNT(*) THEN CAST(SUM(d.ranks_wait_ns) AS BIGINT)
            WHEN COUNT(d.wait_ns) = COUNT(*) THEN CAST(SUM(d.wait_ns) AS BIGINT)
        END AS wait_ns,
        CASE
            WHEN COUNT(d.ranks_wait_ns) < COUNT(*) AND COUNT(d.synchronization_ns) = COUNT(*) THEN CAST(SUM(d.synchronization_ns) AS BIGINT)
        END AS synchronization_ns,
        CASE
            WHEN COUNT(d.ranks_wait_ns) < COUNT(*) AND COUNT(d.idle_ns) = COUNT(*) THEN CAST(SUM(d.idle_ns) AS BIGINT)
        END AS idle_ns,
        CASE WHEN COUNT(d.exposed_ns) = COUNT(*) THEN CAST(SUM(d.exposed_ns) AS BIGINT) END AS exposed_ns,
        CASE
            WHEN COUNT(d.ranks_exposed_wait_ns) = COUNT(*) THEN CAST(SUM(d.ranks_exposed_wait_ns) AS BIGINT)
            WHEN COUNT(d.exposed_wait_ns) = COUNT(*) THEN CAST(SUM(d.exposed_wait_ns) AS BIGINT)
        END AS exposed_wait_ns,
        CASE
            WHEN COUNT(d.ranks_wait_ns) = COUNT(*) THEN 'ranks'
            WHEN COUNT(d.wait_ns) = COUNT(*) OR COUNT(d.transit_ns) = COUNT(*) THEN 'profiler'
        END AS split_by,
        COALESCE(SUM(d.total_ns), -1) AS largest
    FROM communication AS d
    INNER JOIN process_group AS g ON d.process_group_id = g.id
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND d.rank IN :ranks
        AND d.step IN :steps
        AND d.step >= 0
    GROUP BY
        d.run_id,
        COALESCE(c.stage, -1),
        d.rank,
        d.step,
        d.kind_id,
        g.role,
        g.size,
        d.data_type_id,
        d.size_class_bytes
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.step,
    t_kind.text AS kind,
    s.group_role,
    NULLIF(s.group_size, -1) AS group_size,
    t_data_type.text AS data_type,
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
LEFT JOIN detail_text AS t_data_type ON s.data_type = t_data_type.id
LEFT JOIN detail_text AS t_kind ON s.kind = t_kind.id
ORDER BY
    s.largest DESC,
    t_kind.text,
    s.group_role,
    s.group_size,
    t_data_type.text,
    s.size_class_bytes,
    s.run_id,
    s.stage,
    s.rank,
    s.step;

-- communication_task: sums of a run
WITH summed AS (
    SELECT
        d.run_id,
        m.kind_id AS kind,
        g.role AS group_role,
        g.size AS group_size,
        m.data_type_id AS data_type,
        m.size_class_bytes,
        d.name_id AS name,
        d.plane_id AS plane,
        CAST(SUM(d.calls) AS BIGINT) AS calls,
        CAST(SUM(d.total_ns) AS BIGINT) AS total_ns,
        MIN(d.min_ns) AS min_ns,
        MAX(d.max_ns) AS max_ns,
        COALESCE(SUM(d.total_ns), -1) AS largest
    FROM communication_task AS d
    INNER JOIN communication AS m
        ON
            d.run_id = m.run_id
            AND d.rank = m.rank
            AND d.communication = m.ordinal
    INNER JOIN process_group AS g ON m.process_group_id = g.id
    WHERE
        d.run_id IN :run_ids
    GROUP BY
        d.run_id,
        m.kind_id,
        g.role,
        g.size,
        m.data_type_id,
        m.size_class_bytes,
        d.name_id,
        d.plane_id
)

SELECT
    s.run_id,
    t_kind.text AS kind,
    s.group_role,
    NULLIF(s.group_size, -1) AS group_size,
    t_data_type.text AS data_type,
    NULLIF(s.size_class_bytes, -1) AS size_class_bytes,
    t_name.text AS name,
    t_plane.text AS plane,
    s.calls,
    s.total_ns,
    s.min_ns,
    s.max_ns
FROM summed AS s
LEFT JOIN detail_text AS t_data_type ON s.data_type = t_data_type.id
LEFT JOIN detail_text AS t_kind ON s.kind = t_kind.id
LEFT JOIN detail_text AS t_name ON s.name = t_name.id
LEFT JOIN detail_text AS t_plane ON s.plane = t_plane.id
ORDER BY
    s.largest DESC,
    t_kind.text,
    s.group_role,
    s.group_size,
    t_data_type.text,
    s.size_class_bytes,
    t_name.text,
    t_plane.text,
    s.run_id;

-- communication_task: sums by stage, rank, step
WITH summed AS (
    SELECT
        d.run_id,
        COALESCE(c.stage, -1) AS stage,
        d.rank,
        m.step,
        m.kind_id AS kind,
        g.role AS group_role,
        g.size AS group_size,
        m.data_type_id AS data_type,
        m.size_class_bytes,
        d.name_id AS name,
        d.plane_id AS plane,
        CAST(SUM(d.calls) AS BIGINT) AS calls,
        CAST(SUM(d.total_ns) AS BIGINT) AS total_ns,
        MIN(d.min_ns) AS min_ns,
        MAX(d.max_ns) AS max_ns,
        COALESCE(SUM(d.total_ns), -1) AS largest
    FROM communication_task AS d
    INNER JOIN communication AS m
        ON
            d.run_id = m.run_id
            AND d.rank = m.rank
            AND d.communication = m.ordinal
    INNER JOIN process_group AS g ON m.process_group_id = g.id
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND d.rank IN :ranks
        AND m.step IN :steps
        AND m.step >= 0
    GROUP BY
        d.run_id,
        COALESCE(c.stage, -1),
        d.rank,
        m.step,
        m.kind_id,
        g.role,
        g.size,
        m.data_type_id,
        m.size_class_bytes,
        d.name_id,
        d.plane_id
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.step,
    t_kind.text AS kind,
    s.group_role,
    NULLIF(s.group_size, -1) AS group_size,
    t_data_type.text AS data_type,
    NULLIF(s.size_class_bytes, -1) AS size_class_bytes,
    t_name.text AS name,
    t_plane.text AS plane,
    s.calls,
    s.total_ns,
    s.min_ns,
    s.max_ns
FROM summed AS s
LEFT JOIN detail_text AS t_data_type ON s.data_type = t_data_type.id
LEFT JOIN detail_text AS t_kind ON s.kind = t_kind.id
LEFT JOIN detail_text AS t_name ON s.name = t_name.id
LEFT JOIN detail_text AS t_plane ON s.plane = t_plane.id
ORDER BY
    s.largest DESC,
    t_kind.text,
    s.group_role,
    s.group_size,
    t_data_type.text,
    s.size_class_bytes,
    t_name.text,
    t_plane.text,
    s.run_id,
    s.stage,
    s.rank,
    s.step;

-- communication_wait: sums of a run
WITH summed AS (
    SELECT
        d.run_id,
        m.kind_id AS kind,
        g.role AS group_role,
        g.size AS group_size,
        m.data_type_id AS data_type,
        m.size_class_bytes,
        d.peer,
        d.is_global,
        CAST(SUM(d.calls) AS BIGINT) AS calls,
        CAST(SUM(d.total_ns) AS BIGINT) AS total_ns,
        MAX(d.max_ns) AS max_ns,
        COALESCE(SUM(d.total_ns), -1) AS largest
    FROM communication_wait AS d
    INNER JOIN communication AS m
        ON
            d.run_id = m.run_id
            AND d.rank = m.rank
            AND d.communication = m.ordinal
    INNER JOIN process_group AS g ON m.process_group_id = g.id
    WHERE
        d.run_id IN :run_ids
    GROUP BY
        d.run_id,
        m.kind_id,
        g.role,
        g.size,
        m.data_type_id,
        m.size_class_bytes,
        d.peer,
        d.is_global
)

SELECT
    s.run_id,
    t_kind.text AS kind,
    s.group_role,
    NULLIF(s.group_size, -1) AS group_size,
    t_data_type.text AS data_type,
    NULLIF(s.size_class_bytes, -1) AS size_class_bytes,
    NULLIF(s.peer, -1) AS peer,
    NULLIF(s.is_global, -1) AS is_global,
    s.calls,
    s.total_ns,
    s.max_ns
FROM summed AS s
LEFT JOIN detail_text AS t_data_type ON s.data_type = t_data_type.id
LEFT JOIN detail_text AS t_kind ON s.kind = t_kind.id
ORDER BY
    s.largest DESC,
    t_kind.text,
    s.group_role,
    s.group_size,
    t_data_type.text,
    s.size_class_bytes,
    s.peer,
    s.is_global,
    s.run_id;

-- communication_wait: sums by stage, rank, step
WITH summed AS (
    SELECT
        d.run_id,
        COALESCE(c.stage, -1) AS stage,
        d.rank,
        m.step,
        m.kind_id AS kind,
        g.role AS group_role,
        g.size AS group_size,
        m.data_type_id AS data_type,
        m.size_class_bytes,
        d.peer,
        d.is_global,
        CAST(SUM(d.calls) AS BIGINT) AS calls,
        CAST(SUM(d.total_ns) AS BIGINT) AS total_ns,
        MAX(d.max_ns) AS max_ns,
        COALESCE(SUM(d.total_ns), -1) AS largest
    FROM communication_wait AS d
    INNER JOIN communication AS m
        ON
            d.run_id = m.run_id
            AND d.rank = m.rank
            AND d.communication = m.ordinal
    INNER JOIN process_group AS g ON m.process_group_id = g.id
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND d.rank IN :ranks
        AND m.step IN :steps
        AND m.step >= 0
    GROUP BY
        d.run_id,
        COALESCE(c.stage, -1),
        d.rank,
        m.step,
        m.kind_id,
        g.role,
        g.size,
        m.data_type_id,
        m.size_class_bytes,
        d.peer,
        d.is_global
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.step,
    t_kind.text AS kind,
    s.group_role,
    NULLIF(s.group_size, -1) AS group_size,
    t_data_type.text AS data_type,
    NULLIF(s.size_class_bytes, -1) AS size_class_bytes,
    NULLIF(s.peer, -1) AS peer,
    NULLIF(s.is_global, -1) AS is_global,
    s.calls,
    s.total_ns,
    s.max_ns
FROM summed AS s
LEFT JOIN detail_text AS t_data_type ON s.data_type = t_data_type.id
LEFT JOIN detail_text AS t_kind ON s.kind = t_kind.id
ORDER BY
    s.largest DESC,
    t_kind.text,
    s.group_role,
    s.group_size,
    t_data_type.text,
    s.size_class_bytes,
    s.peer,
    s.is_global,
    s.run_id,
    s.stage,
    s.rank,
    s.step;

-- communication_link: sums of a run
WITH summed AS (
    SELECT
        d.run_id,
        m.kind_id AS kind,
        g.role AS group_role,
        g.size AS group_size,
        m.data_type_id AS data_type,
        m.size_class_bytes,
        d.transport_id AS transport,
        d.source AS source_rank,
        d.target AS target_rank,
        d.packet_bytes,
        CAST(SUM(d.calls) AS BIGINT) AS calls,
        CASE WHEN COUNT(d.packets) = COUNT(*) THEN CAST(SUM(d.packets) AS BIGINT) END AS packets,
        CASE WHEN COUNT(d.bytes) = COUNT(*) THEN CAST(SUM(d.bytes) AS BIGINT) END AS bytes,
        CASE WHEN COUNT(d.transit_ns) = COUNT(*) THEN CAST(SUM(d.transit_ns) AS BIGINT) END AS transit_ns,
        COALESCE(
            SUM(d.large_packet_ratio * d.bytes) / NULLIF(SUM(CASE WHEN d.large_packet_ratio IS NOT NULL THEN d.bytes END), 0),
            AVG(d.large_packet_ratio)
        ) AS large_packet_ratio,
        COALESCE(SUM(d.bytes), -1) AS largest
    FROM communication_link AS d
    INNER JOIN communication AS m
        ON
            d.run_id = m.run_id
            AND d.rank = m.rank
            AND d.communication = m.ordinal
    INNER JOIN process_group AS g ON m.process_group_id = g.id
    WHERE
        d.run_id IN :run_ids
    GROUP BY
        d.run_id,
        m.kind_id,
        g.role,
        g.size,
        m.data_type_id,
        m.size_class_bytes,
        d.transport_id,
        d.source,
        d.target,
        d.packet_bytes
)

SELECT
    s.run_id,
    t_kind.text AS kind,
    s.group_role,
    NULLIF(s.group_size, -1) AS group_size,
    t_data_type.text AS data_type,
    NULLIF(s.size_class_bytes, -1) AS size_class_bytes,
    t_transport.text AS transport,
    NULLIF(s.source_rank, -1) AS source_rank,
    NULLIF(s.target_rank, -1) AS target_rank,
    NULLIF(s.packet_bytes, -1) AS packet_bytes,
    s.calls,
    s.packets,
    s.bytes,
    s.transit_ns,
    s.large_packet_ratio
FROM summed AS s
LEFT JOIN detail_text AS t_data_type ON s.data_type = t_data_type.id
LEFT JOIN detail_text AS t_kind ON s.kind = t_kind.id
LEFT JOIN detail_text AS t_transport ON s.transport = t_transport.id
ORDER BY
    s.largest DESC,
    t_kind.text,
    s.group_role,
    s.group_size,
    t_data_type.text,
    s.size_class_bytes,
    t_transport.text,
    s.source_rank,
    s.target_rank,
    s.packet_bytes,
    s.run_id;

-- communication_link: sums by stage, rank, step
WITH summed AS (
    SELECT
        d.run_id,
        COALESCE(c.stage, -1) AS stage,
        d.rank,
        m.step,
        m.kind_id AS kind,
        g.role AS group_role,
        g.size AS group_size,
        m.data_type_id AS data_type,
        m.size_class_bytes,
        d.transport_id AS transport,
        d.source AS source_rank,
        d.target AS target_rank,
        d.packet_bytes,
        CAST(SUM(d.calls) AS BIGINT) AS calls,
        CASE WHEN COUNT(d.packets) = COUNT(*) THEN CAST(SUM(d.packets) AS BIGINT) END AS packets,
        CASE WHEN COUNT(d.bytes) = COUNT(*) THEN CAST(SUM(d.bytes) AS BIGINT) END AS bytes,
        CASE WHEN COUNT(d.transit_ns) = COUNT(*) THEN CAST(SUM(d.transit_ns) AS BIGINT) END AS transit_ns,
        COALESCE(
            SUM(d.large_packet_ratio * d.bytes) / NULLIF(SUM(CASE WHEN d.large_packet_ratio IS NOT NULL THEN d.bytes END), 0),
            AVG(d.large_packet_ratio)
        ) AS large_packet_ratio,
        COALESCE(SUM(d.bytes), -1) AS largest
    FROM communication_link AS d
    INNER JOIN communication AS m
        ON
            d.run_id = m.run_id
            AND d.rank = m.rank
            AND d.communication = m.ordinal
    INNER JOIN process_group AS g ON m.process_group_id = g.id
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND d.rank IN :ranks
        AND m.step IN :steps
        AND m.step >= 0
    GROUP BY
        d.run_id,
        COALESCE(c.stage, -1),
        d.rank,
        m.step,
        m.kind_id,
        g.role,
        g.size,
        m.data_type_id,
        m.size_class_bytes,
        d.transport_id,
        d.source,
        d.target,
        d.packet_bytes
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.step,
    t_kind.text AS kind,
    s.group_role,
    NULLIF(s.group_size, -1) AS group_size,
    t_data_type.text AS data_type,
    NULLIF(s.size_class_bytes, -1) AS size_class_bytes,
    t_transport.text AS transport,
    NULLIF(s.source_rank, -1) AS source_rank,
    NULLIF(s.target_rank, -1) AS target_rank,
    NULLIF(s.packet_bytes, -1) AS packet_bytes,
    s.calls,
    s.packets,
    s.bytes,
    s.transit_ns,
    s.large_packet_ratio
FROM summed AS s
LEFT JOIN detail_text AS t_data_type ON s.data_type = t_data_type.id
LEFT JOIN detail_text AS t_kind ON s.kind = t_kind.id
LEFT JOIN detail_text AS t_transport ON s.transport = t_transport.id
ORDER BY
    s.largest DESC,
    t_kind.text,
    s.group_role,
    s.group_size,
    t_data_type.text,
    s.size_class_bytes,
    t_transport.text,
    s.source_rank,
    s.target_rank,
    s.packet_bytes,
    s.run_id,
    s.stage,
    s.rank,
    s.step;

-- kernel_metric: sums of a run
WITH summed AS (
    SELECT
        d.run_id,
        k.name,
        k.canonical_name,
        k.type,
        k.core_type,
        k.input_shapes,
        d.metric_id AS metric,
        CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
        SUM(d.mean * d.calls) / NULLIF(SUM(CASE WHEN d.mean IS NOT NULL THEN d.calls END), 0) AS mean,
        MIN(d.min) AS min,
        MAX(d.max) AS max
    FROM kernel_metric AS d
    INNER JOIN kernel_key AS k ON d.kernel_key_id = k.id
    WHERE
        d.run_id IN :run_ids
    GROUP BY
        d.run_id,
        k.name,
        k.canonical_name,
        k.type,
        k.core_type,
        k.input_shapes,
        d.metric_id
)

SELECT
    s.run_id,
    s.name,
    s.canonical_name,
    s.type,
    s.core_type,
    s.input_shapes,
    t_metric.text AS metric,
    s.calls,
    s.mean,
    s.min,
    s.max
FROM summed AS s
LEFT JOIN detail_text AS t_metric ON s.metric = t_metric.id
ORDER BY
    s.name,
    s.canonical_name,
    s.type,
    s.core_type,
    s.input_shapes,
    t_metric.text,
    s.run_id;

-- kernel_metric: sums by stage, rank
WITH summed AS (
    SELECT
        d.run_id,
        COALESCE(c.stage, -1) AS stage,
        d.rank,
        k.name,
        k.canonical_name,
        k.type,
        k.core_type,
        k.input_shapes,
        d.metric_id AS metric,
        CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
        SUM(d.mean * d.calls) / NULLIF(SUM(CASE WHEN d.mean IS NOT NULL THEN d.calls END), 0) AS mean,
        MIN(d.min) AS min,
        MAX(d.max) AS max
    FROM kernel_metric AS d
    INNER JOIN kernel_key AS k ON d.kernel_key_id = k.id
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND d.rank IN :ranks
    GROUP BY
        d.run_id,
        COALESCE(c.stage, -1),
        d.rank,
        k.name,
        k.canonical_name,
        k.type,
        k.core_type,
        k.input_shapes,
        d.metric_id
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
    t_metric.text AS metric,
    s.calls,
    s.mean,
    s.min,
    s.max
FROM summed AS s
LEFT JOIN detail_text AS t_metric ON s.metric = t_metric.id
ORDER BY
    s.name,
    s.canonical_name,
    s.type,
    s.core_type,
    s.input_shapes,
    t_metric.text,
    s.run_id,
    s.stage,
    s.rank;

-- counter: sums of a run
WITH summed AS (
    SELECT
        d.run_id,
        d.source_id AS source,
        d.name_id AS name,
        d.attribute_id AS attribute,
        CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
        SUM(d.mean * d.calls) / NULLIF(SUM(CASE WHEN d.mean IS NOT NULL THEN d.calls END), 0) AS mean,
        MIN(d.min) AS min,
        MAX(d.max) AS max
    FROM counter AS d
    WHERE
        d.run_id IN :run_ids
    GROUP BY
        d.run_id,
        d.source_id,
        d.name_id,
        d.attribute_id
)

SELECT
    s.run_id,
    t_source.text AS source,
    t_name.text AS name,
    t_attribute.text AS attribute,
    s.calls,
    s.mean,
    s.min,
    s.max
FROM summed AS s
LEFT JOIN detail_text AS t_attribute ON s.attribute = t_attribute.id
LEFT JOIN detail_text AS t_name ON s.name = t_name.id
LEFT JOIN detail_text AS t_source ON s.source = t_source.id
ORDER BY
    t_source.text,
    t_name.text,
    t_attribute.text,
    s.run_id;

-- counter: sums by stage, rank, step
WITH summed AS (
    SELECT
        d.run_id,
        COALESCE(c.stage, -1) AS stage,
        d.rank,
        d.step,
        d.source_id AS source,
        d.name_id AS name,
        d.attribute_id AS attribute,
        CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
        SUM(d.mean * d.calls) / NULLIF(SUM(CASE WHEN d.mean IS NOT NULL THEN d.calls END), 0) AS mean,
        MIN(d.min) AS min,
        MAX(d.max) AS max
    FROM counter AS d
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND d.rank IN :ranks
        AND d.step IN :steps
        AND d.step >= 0
    GROUP BY
        d.run_id,
        COALESCE(c.stage, -1),
        d.rank,
        d.step,
        d.source_id,
        d.name_id,
        d.attribute_id
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.step,
    t_source.text AS source,
    t_name.text AS name,
    t_attribute.text AS attribute,
    s.calls,
    s.mean,
    s.min,
    s.max
FROM summed AS s
LEFT JOIN detail_text AS t_attribute ON s.attribute = t_attribute.id
LEFT JOIN detail_text AS t_name ON s.name = t_name.id
LEFT JOIN detail_text AS t_source ON s.source = t_source.id
ORDER BY
    t_source.text,
    t_name.text,
    t_attribute.text,
    s.run_id,
    s.stage,
    s.rank,
    s.step;

-- memory: sums of a run
WITH summed AS (
    SELECT
        d.run_id,
        k.name_id AS op,
        k.input_shapes_id AS input_shapes,
        k.input_types_id AS input_types,
        d.component_id AS component,
        CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
        CASE WHEN COUNT(d.bytes) = COUNT(*) THEN CAST(SUM(d.bytes) AS BIGINT) END AS bytes,
        CAST(SUM(d.held_ns) AS BIGINT) AS held_ns,
        CASE WHEN COUNT(d.unreleased_bytes) = COUNT(*) THEN CAST(SUM(d.unreleased_bytes) AS BIGINT) END AS unreleased_bytes,
        COALESCE(SUM(d.bytes), -1) AS largest
    FROM memory AS d
    INNER JOIN op_key AS k ON d.op_key_id = k.id
    WHERE
        d.run_id IN :run_ids
    GROUP BY
        d.run_id,
        k.name_id,
        k.input_shapes_id,
        k.input_types_id,
        d.component_id
)

SELECT
    s.run_id,
    t_op.text AS op,
    t_input_shapes.text AS input_shapes,
    t_input_types.text AS input_types,
    t_component.text AS component,
    s.calls,
    s.bytes,
    s.held_ns,
    s.unreleased_bytes
FROM summed AS s
LEFT JOIN detail_text AS t_component ON s.component = t_component.id
LEFT JOIN detail_text AS t_input_shapes ON s.input_shapes = t_input_shapes.id
LEFT JOIN detail_text AS t_input_types ON s.input_types = t_input_types.id
LEFT JOIN detail_text AS t_op ON s.op = t_op.id
ORDER BY
    s.largest DESC,
    t_op.text,
    t_input_shapes.text,
    t_input_types.text,
    t_component.text,
    s.run_id;

-- memory: sums by stage, rank, step
WITH summed AS (
    SELECT
        d.run_id,
        COALESCE(c.stage, -1) AS stage,
        d.rank,
        d.step,
        k.name_id AS op,
        k.input_shapes_id AS input_shapes,
        k.input_types_id AS input_types,
        d.component_id AS component,
        CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
        CASE WHEN COUNT(d.bytes) = COUNT(*) THEN CAST(SUM(d.bytes) AS BIGINT) END AS bytes,
        CAST(SUM(d.held_ns) AS BIGINT) AS held_ns,
        CASE WHEN COUNT(d.unreleased_bytes) = COUNT(*) THEN CAST(SUM(d.unreleased_bytes) AS BIGINT) END AS unreleased_bytes,
        COALESCE(SUM(d.bytes), -1) AS largest
    FROM memory AS d
    INNER JOIN op_key AS k ON d.op_key_id = k.id
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND d.rank IN :ranks
        AND d.step IN :steps
        AND d.step >= 0
    GROUP BY
        d.run_id,
        COALESCE(c.stage, -1),
        d.rank,
        d.step,
        k.name_id,
        k.input_shapes_id,
        k.input_types_id,
        d.component_id
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.step,
    t_op.text AS op,
    t_input_shapes.text AS input_shapes,
    t_input_types.text AS input_types,
    t_component.text AS component,
    s.calls,
    s.bytes,
    s.held_ns,
    s.unreleased_bytes
FROM summed AS s
LEFT JOIN detail_text AS t_component ON s.component = t_component.id
LEFT JOIN detail_text AS t_input_shapes ON s.input_shapes = t_input_shapes.id
LEFT JOIN detail_text AS t_input_types ON s.input_types = t_input_types.id
LEFT JOIN detail_text AS t_op ON s.op = t_op.id
ORDER BY
    s.largest DESC,
    t_op.text,
    t_input_shapes.text,
    t_input_types.text,
    t_component.text,
    s.run_id,
    s.stage,
    s.rank,
    s.step;

-- memory_allocator: sums of a run
WITH summed AS (
    SELECT
        d.run_id,
        k.name_id AS op,
        k.input_shapes_id AS input_shapes,
        k.input_types_id AS input_types,
        d.component_id AS component,
        d.allocator_id AS allocator,
        CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
        CASE WHEN COUNT(d.bytes) = COUNT(*) THEN CAST(SUM(d.bytes) AS BIGINT) END AS bytes,
        CAST(SUM(d.held_ns) AS BIGINT) AS held_ns,
        CASE WHEN COUNT(d.unreleased_bytes) = COUNT(*) THEN CAST(SUM(d.unreleased_bytes) AS BIGINT) END AS unreleased_bytes,
        COALESCE(SUM(d.bytes), -1) AS largest
    FROM memory_allocator AS d
    INNER JOIN op_key AS k ON d.op_key_id = k.id
    WHERE
        d.run_id IN :run_ids
    GROUP BY
        d.run_id,
        k.name_id,
        k.input_shapes_id,
        k.input_types_id,
        d.component_id,
        d.allocator_id
)

SELECT
    s.run_id,
    t_op.text AS op,
    t_input_shapes.text AS input_shapes,
    t_input_types.text AS input_types,
    t_component.text AS component,
    t_allocator.text AS allocator,
    s.calls,
    s.bytes,
    s.held_ns,
    s.unreleased_bytes
FROM summed AS s
LEFT JOIN detail_text AS t_allocator ON s.allocator = t_allocator.id
LEFT JOIN detail_text AS t_component ON s.component = t_component.id
LEFT JOIN detail_text AS t_input_shapes ON s.input_shapes = t_input_shapes.id
LEFT JOIN detail_text AS t_input_types ON s.input_types = t_input_types.id
LEFT JOIN detail_text AS t_op ON s.op = t_op.id
ORDER BY
    s.largest DESC,
    t_op.text,
    t_input_shapes.text,
    t_input_types.text,
    t_component.text,
    t_allocator.text,
    s.run_id;

-- memory_allocator: sums by stage, rank, step
WITH summed AS (
    SELECT
        d.run_id,
        COALESCE(c.stage, -1) AS stage,
        d.rank,
        d.step,
        k.name_id AS op,
        k.input_shapes_id AS input_shapes,
        k.input_types_id AS input_types,
        d.component_id AS component,
        d.allocator_id AS allocator,
        CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
        CASE WHEN COUNT(d.bytes) = COUNT(*) THEN CAST(SUM(d.bytes) AS BIGINT) END AS bytes,
        CAST(SUM(d.held_ns) AS BIGINT) AS held_ns,
        CASE WHEN COUNT(d.unreleased_bytes) = COUNT(*) THEN CAST(SUM(d.unreleased_bytes) AS BIGINT) END AS unreleased_bytes,
        COALESCE(SUM(d.bytes), -1) AS largest
    FROM memory_allocator AS d
    INNER JOIN op_key AS k ON d.op_key_id = k.id
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND d.rank IN :ranks
        AND d.step IN :steps
        AND d.step >= 0
    GROUP BY
        d.run_id,
        COALESCE(c.stage, -1),
        d.rank,
        d.step,
        k.name_id,
        k.input_shapes_id,
        k.input_types_id,
        d.component_id,
        d.allocator_id
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.step,
    t_op.text AS op,
    t_input_shapes.text AS input_shapes,
    t_input_types.text AS input_types,
    t_component.text AS component,
    t_allocator.text AS allocator,
    s.calls,
    s.bytes,
    s.held_ns,
    s.unreleased_bytes
FROM summed AS s
LEFT JOIN detail_text AS t_allocator ON s.allocator = t_allocator.id
LEFT JOIN detail_text AS t_component ON s.component = t_component.id
LEFT JOIN detail_text AS t_input_shapes ON s.input_shapes = t_input_shapes.id
LEFT JOIN detail_text AS t_input_types ON s.input_types = t_input_types.id
LEFT JOIN detail_text AS t_op ON s.op = t_op.id
ORDER BY
    s.largest DESC,
    t_op.text,
    t_input_shapes.text,
    t_input_types.text,
    t_component.text,
    t_allocator.text,
    s.run_id,
    s.stage,
    s.rank,
    s.step;

-- idle: sums of a run
WITH summed AS (
    SELECT
        d.run_id,
        d.cause_id AS cause,
        d.place_id AS place,
        CASE WHEN COUNT(d.ns) = COUNT(*) THEN CAST(SUM(d.ns) AS BIGINT) END AS ns,
        CASE WHEN COUNT(d.gaps) = COUNT(*) THEN CAST(SUM(d.gaps) AS BIGINT) END AS gaps,
        CAST(SUM(d.behind_wait_ns) AS BIGINT) AS behind_wait_ns,
        COALESCE(SUM(d.ns), -1) AS largest
    FROM idle AS d
    WHERE
        d.run_id IN :run_ids
    GROUP BY
        d.run_id,
        d.cause_id,
        d.place_id
)

SELECT
    s.run_id,
    t_cause.text AS cause,
    t_place.text AS place,
    s.ns,
    s.gaps,
    s.behind_wait_ns
FROM summed AS s
LEFT JOIN detail_text AS t_cause ON s.cause = t_cause.id
LEFT JOIN detail_text AS t_place ON s.place = t_place.id
ORDER BY
    s.largest DESC,
    t_cause.text,
    t_place.text,
    s.run_id;

-- idle: sums by stage, rank, step
WITH summed AS (
    SELECT
        d.run_id,
        COALESCE(c.stage, -1) AS stage,
        d.rank,
        d.step,
        d.cause_id AS cause,
        d.place_id AS place,
        CASE WHEN COUNT(d.ns) = COUNT(*) THEN CAST(SUM(d.ns) AS BIGINT) END AS ns,
        CASE WHEN COUNT(d.gaps) = COUNT(*) THEN CAST(SUM(d.gaps) AS BIGINT) END AS gaps,
        CAST(SUM(d.behind_wait_ns) AS BIGINT) AS behind_wait_ns,
        COALESCE(SUM(d.ns), -1) AS largest
    FROM idle AS d
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND d.rank IN :ranks
        AND d.step IN :steps
        AND d.step >= 0
    GROUP BY
        d.run_id,
        COALESCE(c.stage, -1),
        d.rank,
        d.step,
        d.cause_id,
        d.place_id
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.step,
    t_cause.text AS cause,
    t_place.text AS place,
    s.ns,
    s.gaps,
    s.behind_wait_ns
FROM summed AS s
LEFT JOIN detail_text AS t_cause ON s.cause = t_cause.id
LEFT JOIN detail_text AS t_place ON s.place = t_place.id
ORDER BY
    s.largest DESC,
    t_cause.text,
    t_place.text,
    s.run_id,
    s.stage,
    s.rank,
    s.step;

-- queue: sums of a run
SELECT
    d.run_id,
    d.stream,
    CASE WHEN COUNT(d.kernels) = COUNT(*) THEN CAST(SUM(d.kernels) AS BIGINT) END AS kernels,
    CASE WHEN COUNT(d.lead_ns) = COUNT(*) THEN CAST(SUM(d.lead_ns) AS BIGINT) END AS lead_ns,
    MAX(d.max_lead_ns) AS max_lead_ns,
    CASE WHEN COUNT(d.queued) = COUNT(*) THEN CAST(SUM(d.queued) AS BIGINT) END AS queued
FROM queue AS d
WHERE
    d.run_id IN :run_ids
GROUP BY
    d.run_id,
    d.stream
ORDER BY
    d.run_id,
    d.stream;

-- queue: sums by stage, rank, step
SELECT
    d.run_id,
    COALESCE(c.stage, -1) AS stage,
    d.rank,
    d.step,
    d.stream,
    CASE WHEN COUNT(d.kernels) = COUNT(*) THEN CAST(SUM(d.kernels) AS BIGINT) END AS kernels,
    CASE WHEN COUNT(d.lead_ns) = COUNT(*) THEN CAST(SUM(d.lead_ns) AS BIGINT) END AS lead_ns,
    MAX(d.max_lead_ns) AS max_lead_ns,
    CASE WHEN COUNT(d.queued) = COUNT(*) THEN CAST(SUM(d.queued) AS BIGINT) END AS queued
FROM queue AS d
INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
WHERE
    d.run_id IN :run_ids
    AND d.rank IN :ranks
    AND d.step IN :steps
    AND d.step >= 0
GROUP BY
    d.run_id,
    COALESCE(c.stage, -1),
    d.rank,
    d.step,
    d.stream
ORDER BY
    d.run_id,
    COALESCE(c.stage, -1),
    d.rank,
    d.step,
    d.stream;

-- api: sums of a run
WITH summed AS (
    SELECT
        d.run_id,
        d.level_id AS level,
        d.name_id AS name,
        CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
        CASE WHEN COUNT(d.total_ns) = COUNT(*) THEN CAST(SUM(d.total_ns) AS BIGINT) END AS total_ns,
        CASE WHEN COUNT(d.self_ns) = COUNT(*) THEN CAST(SUM(d.self_ns) AS BIGINT) END AS self_ns,
        MIN(d.min_ns) AS min_ns,
        MAX(d.max_ns) AS max_ns,
        COALESCE(SUM(d.total_ns), -1) AS largest
    FROM api AS d
    WHERE
        d.run_id IN :run_ids
    GROUP BY
        d.run_id,
        d.level_id,
        d.name_id
)

SELECT
    s.run_id,
    t_level.text AS level,
    t_name.text AS name,
    s.calls,
    s.total_ns,
    s.self_ns,
    s.min_ns,
    s.max_ns
FROM summed AS s
LEFT JOIN detail_text AS t_level ON s.level = t_level.id
LEFT JOIN detail_text AS t_name ON s.name = t_name.id
ORDER BY
    s.largest DESC,
    t_level.text,
    t_name.text,
    s.run_id;

-- api: sums by stage, rank, step
WITH summed AS (
    SELECT
        d.run_id,
        COALESCE(c.stage, -1) AS stage,
        d.rank,
        d.step,
        d.level_id AS level,
        d.name_id AS name,
        CASE WHEN COUNT(d.calls) = COUNT(*) THEN CAST(SUM(d.calls) AS BIGINT) END AS calls,
        CASE WHEN COUNT(d.total_ns) = COUNT(*) THEN CAST(SUM(d.total_ns) AS BIGINT) END AS total_ns,
        CASE WHEN COUNT(d.self_ns) = COUNT(*) THEN CAST(SUM(d.self_ns) AS BIGINT) END AS self_ns,
        MIN(d.min_ns) AS min_ns,
        MAX(d.max_ns) AS max_ns,
        COALESCE(SUM(d.total_ns), -1) AS largest
    FROM api AS d
    INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
    WHERE
        d.run_id IN :run_ids
        AND d.rank IN :ranks
        AND d.step IN :steps
        AND d.step >= 0
    GROUP BY
        d.run_id,
        COALESCE(c.stage, -1),
        d.rank,
        d.step,
        d.level_id,
        d.name_id
)

SELECT
    s.run_id,
    NULLIF(s.stage, -1) AS stage,
    s.rank,
    s.step,
    t_level.text AS level,
    t_name.text AS name,
    s.calls,
    s.total_ns,
    s.self_ns,
    s.min_ns,
    s.max_ns
FROM summed AS s
LEFT JOIN detail_text AS t_level ON s.level = t_level.id
LEFT JOIN detail_text AS t_name ON s.name = t_name.id
ORDER BY
    s.largest DESC,
    t_level.text,
    t_name.text,
    s.run_id,
    s.stage,
    s.rank,
    s.step;

-- op: rows of a run
SELECT
    d.rank,
    d.step,
    d.op_key_id,
    d.calls,
    d.host_self_ns,
    d.device_self_ns,
    d.self_by_quartile_ns,
    d.self_by_median_ns
FROM op AS d
WHERE d.run_id = :run_id
ORDER BY d.rank, d.step, d.op_key_id;

-- kernel: rows of a run
SELECT
    d.rank,
    d.step,
    d.kernel_key_id,
    t_category.text AS category,
    d.calls,
    d.total_ns
FROM kernel AS d
INNER JOIN detail_text AS t_category ON d.category_id = t_category.id
WHERE d.run_id = :run_id
ORDER BY d.rank, d.step, d.kernel_key_id, d.op_key_id, d.category_id;

-- communication: rows of a run
SELECT
    d.rank,
    d.step,
    t_kind.text AS kind,
    g.role AS group_role,
    d.size_class_bytes,
    d.calls,
    d.total_ns,
    d.exposed_ns
FROM communication AS d
INNER JOIN detail_text AS t_kind ON d.kind_id = t_kind.id
INNER JOIN process_group AS g ON d.process_group_id = g.id
WHERE d.run_id = :run_id
ORDER BY d.rank, d.ordinal;

-- memory: rows of a run
SELECT
    d.rank,
    d.step,
    d.op_key_id,
    d.calls,
    d.bytes
FROM memory AS d
WHERE d.run_id = :run_id
ORDER BY d.rank, d.step, d.op_key_id, d.component_id;

-- api: rows of a run
SELECT
    d.rank,
    d.step,
    t_level.text AS level,
    t_name.text AS name,
    d.calls,
    d.total_ns,
    d.self_ns
FROM api AS d
INNER JOIN detail_text AS t_level ON d.level_id = t_level.id
INNER JOIN detail_text AS t_name ON d.name_id = t_name.id
WHERE d.run_id = :run_id
ORDER BY d.rank, d.ordinal;

-- idle: rows of a run
SELECT
    d.rank,
    d.step,
    t_cause.text AS cause,
    d.ns
FROM idle AS d
INNER JOIN detail_text AS t_cause ON d.cause_id = t_cause.id
WHERE d.run_id = :run_id
ORDER BY d.rank, d.ordinal;

-- memory_peak: rows
SELECT
    d.run_id,
    d.rank,
    t_component.text AS component,
    t_op.text AS op,
    t_input_shapes.text AS input_shapes,
    t_input_types.text AS input_types,
    t_module.text AS module,
    t_phase.text AS phase,
    t_allocator.text AS allocator,
    d.call_stack_id,
    d.calls,
    d.bytes,
    d.largest_bytes,
    d.first_ns,
    d.first_step,
    d.peak_ns,
    d.peak_step
FROM memory_peak AS d
INNER JOIN detail_text AS t_component ON d.component_id = t_component.id
INNER JOIN op_key AS k ON d.op_key_id = k.id
INNER JOIN detail_text AS t_op ON k.name_id = t_op.id
INNER JOIN detail_text AS t_input_shapes ON k.input_shapes_id = t_input_shapes.id
INNER JOIN detail_text AS t_input_types ON k.input_types_id = t_input_types.id
INNER JOIN detail_text AS t_module ON k.module_id = t_module.id
INNER JOIN detail_text AS t_phase ON k.phase_id = t_phase.id
INNER JOIN detail_text AS t_allocator ON d.allocator_id = t_allocator.id
WHERE d.run_id IN :run_ids
ORDER BY d.run_id, d.rank, d.ordinal;

-- memory_block: rows
SELECT
    d.run_id,
    d.rank,
    d.step,
    t_component.text AS component,
    t_op.text AS op,
    t_input_shapes.text AS input_shapes,
    t_input_types.text AS input_types,
    t_module.text AS module,
    t_phase.text AS phase,
    t_allocator.text AS allocator,
    d.call_stack_id,
    d.bytes,
    d.time_ns,
    d.held_ns,
    d.is_released
FROM memory_block AS d
INNER JOIN detail_text AS t_component ON d.component_id = t_component.id
INNER JOIN op_key AS k ON d.op_key_id = k.id
INNER JOIN detail_text AS t_op ON k.name_id = t_op.id
INNER JOIN detail_text AS t_input_shapes ON k.input_shapes_id = t_input_shapes.id
INNER JOIN detail_text AS t_input_types ON k.input_types_id = t_input_types.id
INNER JOIN detail_text AS t_module ON k.module_id = t_module.id
INNER JOIN detail_text AS t_phase ON k.phase_id = t_phase.id
INNER JOIN detail_text AS t_allocator ON d.allocator_id = t_allocator.id
WHERE d.run_id IN :run_ids
ORDER BY d.run_id, d.rank, t_component.text, d.bytes DESC, d.ordinal;

-- memory_curve: rows
SELECT
    d.run_id,
    d.rank,
    t_component.text AS component,
    d.time_ns,
    d.allocated_bytes,
    d.reserved_bytes
FROM memory_curve AS d
INNER JOIN detail_text AS t_component ON d.component_id = t_component.id
WHERE d.run_id IN :run_ids
ORDER BY d.run_id, d.rank, t_component.text, d.time_ns, d.ordinal;

-- memory_curve: rows of ranks
SELECT
    d.run_id,
    d.rank,
    t_component.text AS component,
    d.time_ns,
    d.allocated_bytes,
    d.reserved_bytes
FROM memory_curve AS d
INNER JOIN detail_text AS t_component ON d.component_id = t_component.id
WHERE
    d.run_id IN :run_ids
    AND d.rank IN :ranks
ORDER BY d.run_id, d.rank, t_component.text, d.time_ns, d.ordinal;

-- kernel: what is known of ranks
SELECT
    d.rank,
    d.kernel_key_id,
    d.op_key_id,
    d.category_id,
    CAST(SUM(d.calls) AS BIGINT) AS calls,
    CAST(SUM(d.total_ns) AS BIGINT) AS total_ns,
    CAST(SUM(d.bytes) AS BIGINT) AS bytes
FROM kernel AS d
WHERE
    d.run_id IN :run_ids
    AND (:all_ranks = 1 OR d.rank IN :ranks)
    AND (:in_steps = 0 OR d.step >= 0)
    AND (:all_steps = 1 OR d.step IN :steps)
    AND (:step_kind = '' OR EXISTS (
        SELECT 1
        FROM step AS n
        WHERE n.run_id = d.run_id AND n.rank = d.rank AND n.step = d.step AND n.kind = :step_kind
    ))
GROUP BY d.rank, d.kernel_key_id, d.op_key_id, d.category_id
ORDER BY d.rank, d.kernel_key_id, d.op_key_id, d.category_id;

-- which levels have rows
SELECT
    c.run_id,
    c.rank,
    CASE WHEN c.kernel_total_ns IS NOT NULL THEN 1 ELSE 0 END AS has_totals,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM communication AS d
                WHERE d.run_id IN :run_ids AND d.run_id = c.run_id AND d.rank = c.rank
            )
            THEN 1
        ELSE 0
    END AS has_communication,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM memory AS d
                WHERE d.run_id IN :run_ids AND d.run_id = c.run_id AND d.rank = c.rank
            )
            THEN 1
        ELSE 0
    END AS has_memory,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM api AS d
                WHERE d.run_id IN :run_ids AND d.run_id = c.run_id AND d.rank = c.rank
            )
            THEN 1
        ELSE 0
    END AS has_api,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM idle AS d
                WHERE d.run_id IN :run_ids AND d.run_id = c.run_id AND d.rank = c.rank
            )
            THEN 1
        ELSE 0
    END AS has_idle,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM kernel_metric AS d
                WHERE d.run_id IN :run_ids AND d.run_id = c.run_id AND d.rank = c.rank
            )
            THEN 1
        ELSE 0
    END AS has_metrics,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM memory_curve AS d
                WHERE d.run_id IN :run_ids AND d.run_id = c.run_id AND d.rank = c.rank
            )
            THEN 1
        ELSE 0
    END AS has_curve,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM counter AS d
                WHERE d.run_id IN :run_ids AND d.run_id = c.run_id AND d.rank = c.rank
            )
            THEN 1
        ELSE 0
    END AS has_counters
FROM capture AS c
WHERE c.run_id IN :run_ids
ORDER BY c.run_id, c.rank;
