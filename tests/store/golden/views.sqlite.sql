CREATE VIEW v_version AS
WITH counted AS (
    SELECT
        c.run_id,
        COUNT(*) AS ranks
    FROM capture AS c
    GROUP BY c.run_id
),

present AS (
    SELECT
        r.workload_id,
        r.configuration_id,
        r.device_id,
        r.version_id,
        v.ordinal,
        w.main_id,
        j.basis,
        COUNT(*) AS runs,
        SUM(
            CASE
                WHEN
                    REPLACE(
                        j.basis,
                        '(' || r.id || ':' || COALESCE(n.ranks, 0) || ':' || COALESCE(CAST(r.recording_id AS TEXT), '')
                        || ':' || COALESCE(CAST(r.started_at_ns AS TEXT), '') || ')',
                        ''
                    ) <> j.basis THEN 1
                ELSE 0
            END
        ) AS same_runs
    FROM run AS r
    INNER JOIN workload AS w ON r.workload_id = w.id
    INNER JOIN version AS v ON r.version_id = v.id
    LEFT JOIN counted AS n ON r.id = n.run_id
    LEFT JOIN judged_version AS j
        ON
            r.workload_id = j.workload_id
            AND r.configuration_id = j.configuration_id
            AND r.device_id = j.device_id
            AND r.version_id = j.version_id
    WHERE r.state = 'active' AND r.ranks_awaited IS NULL
    GROUP BY r.workload_id, r.configuration_id, r.device_id, r.version_id, v.ordinal, w.main_id, j.basis
),

checked AS (
    SELECT
        s.workload_id,
        s.configuration_id,
        s.device_id,
        s.version_id,
        s.ordinal,
        s.main_id,
        s.basis,
        s.runs,
        CASE
            WHEN s.same_runs < s.runs OR REPLACE(s.basis, '; runs ' || s.runs || ' (', '') = s.basis THEN 0
            WHEN
                SUBSTR(s.basis, 1, 16)
                < (SELECT MAX(SUBSTR(j.basis, 1, 16)) FROM judged_version AS j)
                THEN 0
            -- what a branch rests on is looked at below
            WHEN s.main_id IS NOT NULL THEN 1
            WHEN
                REPLACE(s.basis, '; after ' || COALESCE(LAG(s.version_id) OVER track, 0) || ';', '') = s.basis
                THEN 0
            WHEN
                REPLACE(
                    s.basis,
                    '; limits ' || (
                        SELECT COUNT(*) FROM threshold AS t
                        WHERE
                            s.workload_id = t.workload_id
                            AND t.configuration_id IN (0, s.configuration_id)
                            AND t.device_id IN (0, s.device_id)
                    ) || ' ',
                    ''
                ) = s.basis THEN 0
            WHEN
                EXISTS (
                    SELECT 1 FROM threshold AS t
                    WHERE
                        s.workload_id = t.workload_id
                        AND t.configuration_id IN (0, s.configuration_id)
                        AND t.device_id IN (0, s.device_id)
                        AND REPLACE(
                            s.basis,
                            '<' || t.name || '|' || t.kind || '|' || t.pattern || '|'
                            || CAST(ROUND(t.value * 1000000000.0) AS BIGINT) || '|'
                            || t.configuration_id || '|' || t.device_id || '>',
                            ''
                        ) = s.basis
                ) THEN 0
            ELSE 1
        END AS is_same,
        ROW_NUMBER() OVER (
            PARTITION BY s.workload_id, s.configuration_id, s.device_id
            ORDER BY s.ordinal DESC, s.version_id DESC
        ) AS versions_from_newest
    FROM present AS s
    WINDOW
        track AS (
            PARTITION BY s.workload_id, s.configuration_id, s.device_id
            ORDER BY s.ordinal, s.version_id
        )
),

followed AS (
    SELECT
        s.workload_id,
        s.configuration_id,
        s.device_id,
        s.version_id,
        s.main_id,
        s.basis,
        s.runs,
        s.versions_from_newest,
        -- a judgement rests on those of all versions before
        MIN(s.is_same) OVER track AS is_same
    FROM checked AS s
    WINDOW
        track AS (
            PARTITION BY s.workload_id, s.configuration_id, s.device_id
            ORDER BY s.ordinal, s.version_id
        )
),

known AS (
    SELECT
        s.workload_id,
        s.configuration_id,
        s.device_id,
        s.version_id,
        s.runs,
        s.versions_from_newest,
        CASE
            WHEN s.main_id IS NULL OR s.is_same = 0 THEN s.is_same
            WHEN REPLACE(s.basis, '; base 0;', '') <> s.basis THEN 1
            WHEN
                EXISTS (
                    SELECT 1 FROM followed AS m
                    WHERE
                        s.main_id = m.workload_id
                        AND s.device_id = m.device_id
                        AND m.is_same = 1
                        AND REPLACE(
                            s.basis, '; base ' || m.configuration_id || '.' || m.version_id || ';', ''
                        ) <> s.basis
                ) THEN 1
            ELSE 0
        END AS is_judged
    FROM followed AS s
)

SELECT
    w.name AS workload,
    v.label AS version,
    v.ordinal AS version_ordinal,
    TRIM(h.vendor || ' ' || h.model) AS device,
    g.title AS configuration,
    v.commit_id,
    v.note,
    CASE WHEN v.pinned THEN 1 ELSE 0 END AS is_pinned,
    CASE WHEN k.versions_from_newest = 1 THEN 1 ELSE 0 END AS is_newest,
    k.runs,
    k.is_judged,
    CASE WHEN k.is_judged = 1 THEN j.step_verdict END AS step_verdict,
    CASE WHEN k.is_judged = 1 THEN j.step_before_ns END AS step_before_ns,
    CASE WHEN k.is_judged = 1 THEN j.step_after_ns END AS step_after_ns,
    CASE WHEN k.is_judged = 1 THEN j.net END AS net_ratio,
    CASE WHEN k.is_judged = 1 THEN j.peak END AS peak_memory_ratio,
    k.workload_id,
    k.configuration_id,
    k.device_id,
    k.version_id
FROM known AS k
INNER JOIN workload AS w ON k.workload_id = w.id
INNER JOIN version AS v ON k.version_id = v.id
INNER JOIN device AS h ON k.device_id = h.id
INNER JOIN configuration AS g ON k.configuration_id = g.id
LEFT JOIN judged_version AS j
    ON
        k.workload_id = j.workload_id
        AND k.configuration_id = j.configuration_id
        AND k.device_id = j.device_id
        AND k.version_id = j.version_id;

CREATE VIEW v_run AS
SELECT
    r.id AS run_id,
    w.name AS workload,
    v.label AS version,
    v.ordinal AS version_ordinal,
    TRIM(h.vendor || ' ' || h.model) AS device,
    g.title AS configuration,
    v.commit_id,
    r.state,
    r.state_reason,
    r.note,
    r.started_at_ns,
    r.ended_at_ns,
    (
        SELECT COUNT(*) FROM capture AS c
        WHERE c.run_id = r.id
    ) AS ranks,
    COALESCE(r.ranks_awaited, r.ranks_expected, (
        SELECT COUNT(*) FROM capture AS c
        WHERE c.run_id = r.id
    )) AS ranks_expected,
    r.world_size,
    (
        SELECT MAX(c.quality) FROM capture AS c
        WHERE c.run_id = r.id
    ) AS quality,
    (
        SELECT MAX(c.pruned_at_ns) FROM capture AS c
        WHERE c.run_id = r.id
    ) AS pruned_at_ns,
    CASE WHEN r.state = 'active' AND r.ranks_awaited IS NULL THEN COALESCE(q.is_judged, 0) END AS is_judged,
    (
        SELECT SUM(n.steps)
        FROM (
            SELECT MAX(COALESCE(s.steps, 1)) AS steps
            FROM step AS s
            WHERE s.run_id = r.id
            GROUP BY s.step
        ) AS n
    ) AS steps,
    (
        SELECT MAX(n.value)
        FROM series AS s
        INNER JOIN sample AS n ON s.id = n.series_id
        WHERE
            r.workload_id = s.workload_id
            AND r.configuration_id = s.configuration_id
            AND r.device_id = s.device_id
            AND s.kind = 'run'
            AND s.name = 'step'
            AND s.step_kind = ''
            AND n.run_id = r.id
    ) AS step_ns,
    COALESCE((
        SELECT MAX(n.value)
        FROM series AS s
        INNER JOIN sample AS n ON s.id = n.series_id
        WHERE
            r.workload_id = s.workload_id
            AND r.configuration_id = s.configuration_id
            AND r.device_id = s.device_id
            AND s.kind = 'run'
            AND s.name = 'e2e'
            AND s.step_kind = ''
            AND n.run_id = r.id
    ), (
        SELECT
            CASE
                WHEN COUNT(*) = COUNT(s.e2e_ns) AND MAX(s.e2e_ns) = 0 THEN 0.0
            END
        FROM step AS s
        WHERE s.run_id = r.id
    )) AS e2e_ns,
    COALESCE((
        SELECT MAX(n.value)
        FROM series AS s
        INNER JOIN sample AS n ON s.id = n.series_id
        WHERE
            r.workload_id = s.workload_id
            AND r.configuration_id = s.configuration_id
            AND r.device_id = s.device_id
            AND s.kind = 'run'
            AND s.name = 'compute'
            AND s.step_kind = ''
            AND n.run_id = r.id
    ), (
        SELECT
            CASE
                WHEN COUNT(*) = COUNT(s.compute_ns) AND MAX(s.compute_ns) = 0 THEN 0.0
            END
        FROM step AS s
        WHERE s.run_id = r.id
    )) AS compute_ns,
    COALESCE((
        SELECT MAX(n.value)
        FROM series AS s
        INNER JOIN sample AS n ON s.id = n.series_id
        WHERE
            r.workload_id = s.workload_id
            AND r.configuration_id = s.configuration_id
            AND r.device_id = s.device_id
            AND s.kind = 'run'
            AND s.name = 'exposed communication'
            AND s.step_kind = ''
            AND n.run_id = r.id
    ), (
        SELECT
            CASE
                WHEN COUNT(*) = COUNT(s.exposed_communication_ns) AND MAX(s.exposed_communication_ns) = 0 THEN 0.0
            END
        FROM step AS s
        WHERE s.run_id = r.id
    )) AS exposed_communication_ns,
    COALESCE((
        SELECT MAX(n.value)
        FROM series AS s
        INNER JOIN sample AS n ON s.id = n.series_id
        WHERE
            r.workload_id = s.workload_id
            AND r.configuration_id = s.configuration_id
            AND r.device_id = s.device_id
            AND s.kind = 'run'
            AND s.name = 'exposed copy'
            AND s.step_kind = ''
            AND n.run_id = r.id
    ), (
        SELECT
            CASE
                WHEN COUNT(*) = COUNT(s.exposed_copy_ns) AND MAX(s.exposed_copy_ns) = 0 THEN 0.0
            END
        FROM step AS s
        WHERE s.run_id = r.id
    )) AS exposed_copy_ns,
    COALESCE((
        SELECT MAX(n.value)
        FROM series AS s
        INNER JOIN sample AS n ON s.id = n.series_id
        WHERE
            r.workload_id = s.workload_id
            AND r.configuration_id = s.configuration_id
            AND r.device_id = s.device_id
            AND s.kind = 'run'
            AND s.name = 'idle time'
            AND s.step_kind = ''
            AND n.run_id = r.id
    ), (
        SELECT
            CASE
                WHEN COUNT(*) = COUNT(s.idle_ns) AND MAX(s.idle_ns) = 0 THEN 0.0
            END
        FROM step AS s
        WHERE s.run_id = r.id
    )) AS idle_ns,
    COALESCE((
        SELECT MAX(n.value)
        FROM series AS s
        INNER JOIN sample AS n ON s.id = n.series_id
        WHERE
            r.workload_id = s.workload_id
            AND r.configuration_id = s.configuration_id
            AND r.device_id = s.device_id
            AND s.kind = 'run'
            AND s.name = 'data loading'
            AND s.step_kind = ''
            AND n.run_id = r.id
    ), (
        SELECT
            CASE
                WHEN COUNT(*) = COUNT(s.data_loading_ns) AND MAX(s.data_loading_ns) = 0 THEN 0.0
            END
        FROM step AS s
        WHERE s.run_id = r.id
    )) AS data_loading_ns,
    (
        SELECT MAX(n.value)
        FROM series AS s
        INNER JOIN sample AS n ON s.id = n.series_id
        WHERE
            r.workload_id = s.workload_id
            AND r.configuration_id = s.configuration_id
            AND r.device_id = s.device_id
            AND s.kind = 'run'
            AND s.name = 'peak memory'
            AND s.step_kind = ''
            AND n.run_id = r.id
    ) AS peak_allocated_bytes,
    (
        SELECT CASE WHEN COUNT(*) = 1 THEN MAX(n.value) END
        FROM series AS s
        INNER JOIN sample AS n ON s.id = n.series_id
        WHERE
            r.workload_id = s.workload_id
            AND r.configuration_id = s.configuration_id
            AND r.device_id = s.device_id
            AND s.kind = 'run'
            AND s.name = 'throughput'
            AND s.step_kind = ''
            AND n.run_id = r.id
    ) AS throughput_per_second,
    (
        SELECT CASE WHEN COUNT(*) = 1 THEN MAX(s.input_shapes) END
        FROM series AS s
        INNER JOIN sample AS n ON s.id = n.series_id
        WHERE
            r.workload_id = s.workload_id
            AND r.configuration_id = s.configuration_id
            AND r.device_id = s.device_id
            AND s.kind = 'run'
            AND s.name = 'throughput'
            AND s.step_kind = ''
            AND n.run_id = r.id
    ) AS throughput_unit
FROM run AS r
INNER JOIN workload AS w ON r.workload_id = w.id
INNER JOIN version AS v ON r.version_id = v.id
INNER JOIN device AS h ON r.device_id = h.id
INNER JOIN configuration AS g ON r.configuration_id = g.id
LEFT JOIN v_version AS q
    ON
        r.workload_id = q.workload_id
        AND r.configuration_id = q.configuration_id
        AND r.device_id = q.device_id
        AND r.version_id = q.version_id;

CREATE VIEW v_step AS
SELECT
    r.id AS run_id,
    w.name AS workload,
    v.label AS version,
    v.ordinal AS version_ordinal,
    TRIM(h.vendor || ' ' || h.model) AS device,
    g.title AS configuration,
    c.rank,
    c.stage,
    c.quality,
    NULLIF(d.step, -1) AS step,
    COALESCE(
        d.compute_ns + d.exposed_communication_ns + COALESCE(d.exposed_copy_ns, 0) + d.idle_ns,
        CASE WHEN d.marker_ns IS NOT NULL THEN d.duration_ns END,
        d.e2e_ns,
        d.duration_ns
    ) AS step_ns,
    d.start_ns,
    d.timeline,
    d.duration_ns,
    d.e2e_ns,
    d.compute_ns,
    d.communication_ns,
    d.overlap_ns,
    d.exposed_communication_ns,
    d.copy_ns,
    d.exposed_copy_ns,
    d.idle_ns,
    d.kernel_count,
    d.kernel_total_ns,
    d.compute_total_ns,
    d.communication_total_ns,
    d.copy_total_ns,
    d.unlinked_kernel_count,
    d.unlinked_kernel_total_ns,
    d.peak_allocated_bytes,
    d.peak_reserved_bytes,
    d.data_loading_ns,
    d.bubble_ns,
    d.preparing_ns,
    d.samples_per_second,
    COALESCE(d.steps, 1) AS steps,
    d.data_loading_idle_ns,
    d.marker_ns,
    d.host_idle_ns,
    d.kind
FROM run AS r
INNER JOIN workload AS w ON r.workload_id = w.id
INNER JOIN version AS v ON r.version_id = v.id
INNER JOIN device AS h ON r.device_id = h.id
INNER JOIN configuration AS g ON r.configuration_id = g.id
INNER JOIN capture AS c ON r.id = c.run_id
INNER JOIN step AS d ON c.run_id = d.run_id AND c.rank = d.rank
WHERE r.state = 'active';

CREATE VIEW v_op AS
SELECT
    r.id AS run_id,
    w.name AS workload,
    v.label AS version,
    v.ordinal AS version_ordinal,
    TRIM(h.vendor || ' ' || h.model) AS device,
    g.title AS configuration,
    c.rank,
    c.stage,
    c.quality,
    NULLIF(d.step, -1) AS step,
    t_op.text AS op,
    t_input_shapes.text AS input_shapes,
    t_input_types.text AS input_types,
    t_module.text AS module,
    t_phase.text AS phase,
    t_raw_name.text AS raw_name,
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
FROM run AS r
INNER JOIN workload AS w ON r.workload_id = w.id
INNER JOIN version AS v ON r.version_id = v.id
INNER JOIN device AS h ON r.device_id = h.id
INNER JOIN configuration AS g ON r.configuration_id = g.id
INNER JOIN capture AS c ON r.id = c.run_id
INNER JOIN op AS d ON c.run_id = d.run_id AND c.rank = d.rank
LEFT JOIN op_key AS o ON d.op_key_id = o.id
LEFT JOIN detail_text AS t_op ON o.name_id = t_op.id
LEFT JOIN detail_text AS t_input_shapes ON o.input_shapes_id = t_input_shapes.id
LEFT JOIN detail_text AS t_input_types ON o.input_types_id = t_input_types.id
LEFT JOIN detail_text AS t_module ON o.module_id = t_module.id
LEFT JOIN detail_text AS t_phase ON o.phase_id = t_phase.id
LEFT JOIN detail_text AS t_raw_name ON d.raw_name_id = t_raw_name.id
WHERE r.state = 'active';

CREATE VIEW v_kernel AS
SELECT
    r.id AS run_id,
    w.name AS workload,
    v.label AS version,
    v.ordinal AS version_ordinal,
    TRIM(h.vendor || ' ' || h.model) AS device,
    g.title AS configuration,
    c.rank,
    c.stage,
    c.quality,
    NULLIF(d.step, -1) AS step,
    k.name AS kernel,
    k.canonical_name,
    k.type,
    k.core_type,
    k.input_shapes,
    k.input_types,
    k.input_formats,
    t_op.text AS op,
    t_module.text AS module,
    t_phase.text AS phase,
    t_category.text AS category,
    t_sequence.text AS sequence,
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
FROM run AS r
INNER JOIN workload AS w ON r.workload_id = w.id
INNER JOIN version AS v ON r.version_id = v.id
INNER JOIN device AS h ON r.device_id = h.id
INNER JOIN configuration AS g ON r.configuration_id = g.id
INNER JOIN capture AS c ON r.id = c.run_id
INNER JOIN kernel AS d ON c.run_id = d.run_id AND c.rank = d.rank
LEFT JOIN kernel_key AS k ON d.kernel_key_id = k.id
LEFT JOIN op_key AS o ON d.op_key_id = o.id
LEFT JOIN detail_text AS t_op ON o.name_id = t_op.id
LEFT JOIN detail_text AS t_module ON o.module_id = t_module.id
LEFT JOIN detail_text AS t_phase ON o.phase_id = t_phase.id
LEFT JOIN detail_text AS t_category ON d.category_id = t_category.id
LEFT JOIN detail_text AS t_sequence ON d.sequence_id = t_sequence.id
WHERE r.state = 'active';

CREATE VIEW v_communication AS
SELECT
    r.id AS run_id,
    w.name AS workload,
    v.label AS version,
    v.ordinal AS version_ordinal,
    TRIM(h.vendor || ' ' || h.model) AS device,
    g.title AS configuration,
    c.rank,
    c.stage,
    c.quality,
    NULLIF(d.step, -1) AS step,
    t_kind.text AS kind,
    p.role AS group_role,
    NULLIF(p.size, -1) AS group_size,
    t_data_type.text AS data_type,
    NULLIF(d.size_class_bytes, -1) AS size_class_bytes,
    CASE
        WHEN d.ranks_wait_ns IS NOT NULL THEN 'ranks'
        WHEN d.wait_ns IS NOT NULL OR d.transit_ns IS NOT NULL THEN 'profiler'
    END AS split_by,
    d.calls,
    d.bytes,
    d.total_ns,
    d.min_ns,
    d.max_ns,
    d.sum_squares_ns2,
    COALESCE(d.ranks_transit_ns, d.transit_ns) AS transit_ns,
    COALESCE(d.ranks_wait_ns, d.wait_ns) AS wait_ns,
    CASE WHEN d.ranks_wait_ns IS NULL THEN d.synchronization_ns END AS synchronization_ns,
    CASE WHEN d.ranks_wait_ns IS NULL THEN d.idle_ns END AS idle_ns,
    d.exposed_ns,
    COALESCE(d.ranks_exposed_wait_ns, d.exposed_wait_ns) AS exposed_wait_ns,
    d.paired_calls
FROM run AS r
INNER JOIN workload AS w ON r.workload_id = w.id
INNER JOIN version AS v ON r.version_id = v.id
INNER JOIN device AS h ON r.device_id = h.id
INNER JOIN configuration AS g ON r.configuration_id = g.id
INNER JOIN capture AS c ON r.id = c.run_id
INNER JOIN communication AS d ON c.run_id = d.run_id AND c.rank = d.rank
LEFT JOIN detail_text AS t_kind ON d.kind_id = t_kind.id
LEFT JOIN process_group AS p ON d.process_group_id = p.id
LEFT JOIN detail_text AS t_data_type ON d.data_type_id = t_data_type.id
WHERE r.state = 'active';

CREATE VIEW v_idle AS
SELECT
    r.id AS run_id,
    w.name AS workload,
    v.label AS version,
    v.ordinal AS version_ordinal,
    TRIM(h.vendor || ' ' || h.model) AS device,
    g.title AS configuration,
    c.rank,
    c.stage,
    c.quality,
    NULLIF(d.step, -1) AS step,
    t_cause.text AS cause,
    t_place.text AS place,
    d.ns AS idle_ns,
    d.gaps,
    d.behind_wait_ns
FROM run AS r
INNER JOIN workload AS w ON r.workload_id = w.id
INNER JOIN version AS v ON r.version_id = v.id
INNER JOIN device AS h ON r.device_id = h.id
INNER JOIN configuration AS g ON r.configuration_id = g.id
INNER JOIN capture AS c ON r.id = c.run_id
INNER JOIN idle AS d ON c.run_id = d.run_id AND c.rank = d.rank
LEFT JOIN detail_text AS t_cause ON d.cause_id = t_cause.id
LEFT JOIN detail_text AS t_place ON d.place_id = t_place.id
WHERE r.state = 'active';

CREATE VIEW v_memory AS
SELECT
    r.id AS run_id,
    w.name AS workload,
    v.label AS version,
    v.ordinal AS version_ordinal,
    TRIM(h.vendor || ' ' || h.model) AS device,
    g.title AS configuration,
    c.rank,
    c.stage,
    c.quality,
    NULLIF(d.step, -1) AS step,
    t_op.text AS op,
    t_input_shapes.text AS input_shapes,
    t_input_types.text AS input_types,
    t_module.text AS module,
    t_phase.text AS phase,
    t_component.text AS component,
    d.calls,
    d.bytes,
    d.held_ns,
    d.unreleased_bytes
FROM run AS r
INNER JOIN workload AS w ON r.workload_id = w.id
INNER JOIN version AS v ON r.version_id = v.id
INNER JOIN device AS h ON r.device_id = h.id
INNER JOIN configuration AS g ON r.configuration_id = g.id
INNER JOIN capture AS c ON r.id = c.run_id
INNER JOIN memory AS d ON c.run_id = d.run_id AND c.rank = d.rank
LEFT JOIN op_key AS o ON d.op_key_id = o.id
LEFT JOIN detail_text AS t_op ON o.name_id = t_op.id
LEFT JOIN detail_text AS t_input_shapes ON o.input_shapes_id = t_input_shapes.id
LEFT JOIN detail_text AS t_input_types ON o.input_types_id = t_input_types.id
LEFT JOIN detail_text AS t_module ON o.module_id = t_module.id
LEFT JOIN detail_text AS t_phase ON o.phase_id = t_phase.id
LEFT JOIN detail_text AS t_component ON d.component_id = t_component.id
WHERE r.state = 'active';

CREATE VIEW v_verdict AS
SELECT
    q.workload,
    q.version,
    q.version_ordinal,
    q.device,
    q.configuration,
    s.kind,
    s.metric,
    s.name,
    s.input_shapes,
    s.part,
    s.step_kind,
    CASE
        WHEN d.reason NOT IN ('SETTINGS', 'INCOMPLETE', 'OTHER_WORK') THEN COALESCE(d.decided, d.verdict)
    END AS verdict,
    d.reason,
    d.change AS change_ratio,
    d.judged_change AS judged_change_ratio,
    d.contribution AS contribution_ratio,
    d.detectable AS detectable_ratio,
    d.p,
    d.q,
    d.base_runs AS baseline_runs,
    b.label AS level_version,
    d.series_id
FROM v_version AS q
INNER JOIN verdict AS d ON q.version_id = d.version_id
INNER JOIN series AS s
    ON
        d.series_id = s.id
        AND q.workload_id = s.workload_id
        AND q.configuration_id = s.configuration_id
        AND q.device_id = s.device_id
LEFT JOIN version AS b ON d.level_version_id = b.id
WHERE q.is_judged = 1;

CREATE VIEW v_finding AS
WITH marks AS (
    SELECT
        a.series_id,
        a.direction,
        a.how,
        a.first_version_id,
        MAX(CASE WHEN a.action = 'invalid' THEN 1 ELSE 0 END) AS is_invalid,
        MAX(CASE WHEN a.action NOT IN ('note', 'undo') THEN a.id END) AS last_id,
        MAX(CASE WHEN a.action IN ('ack', 'expect') THEN a.id END) AS settled_id
    FROM finding_action AS a
    WHERE
        NOT EXISTS (
            SELECT 1
            FROM finding_action AS u
            WHERE u.undoes_id = a.id
        )
    GROUP BY a.series_id, a.direction, a.how, a.first_version_id
)

SELECT
    f.id AS finding_id,
    i.id AS incident_id,
    w.name AS workload,
    v.label AS version,
    v.ordinal AS version_ordinal,
    TRIM(h.vendor || ' ' || h.model) AS device,
    g.title AS configuration,
    s.kind,
    s.metric,
    s.name,
    s.input_shapes,
    s.part,
    s.step_kind,
    f.direction,
    f.how,
    CASE
        WHEN m.is_invalid = 1 THEN 'invalid'
        WHEN f.state <> 'open' THEN f.state
        WHEN l.action = 'mute' AND l.until_ns > CAST(STRFTIME('%s', 'now') AS BIGINT) * 1000000000 THEN 'muted'
        WHEN
            l.action = 'mute'
            AND l.until_ns IS NULL
            AND NOT EXISTS (
                SELECT 1
                FROM run AS r
                INNER JOIN version AS u ON r.version_id = u.id
                WHERE
                    f.workload_id = r.workload_id
                    AND f.configuration_id = r.configuration_id
                    AND f.device_id = r.device_id
                    AND r.state = 'active'
                    AND r.ranks_awaited IS NULL
                    AND l.until_version = u.label
            )
            THEN 'muted'
        WHEN n.action = 'ack' THEN 'acknowledged'
        WHEN n.action = 'expect' THEN 'expected'
        WHEN q.is_newest = 1 THEN 'new'
        ELSE 'persisting'
    END AS state,
    q.version AS decided_version,
    e.label AS ended_version,
    f.value_before,
    f.value_after,
    CASE WHEN f.value_before <> 0 AND f.value_after <> 0 THEN f.value_after / f.value_before - 1 END AS change_ratio,
    f.calls_before,
    f.calls_after,
    f.contribution AS contribution_ratio,
    f.q,
    i.before_ns AS step_before_ns,
    i.after_ns AS step_after_ns,
    f.series_id
FROM finding AS f
INNER JOIN workload AS w ON f.workload_id = w.id
INNER JOIN version AS v ON f.first_version_id = v.id
INNER JOIN device AS h ON f.device_id = h.id
INNER JOIN configuration AS g ON f.configuration_id = g.id
INNER JOIN series AS s ON f.series_id = s.id
INNER JOIN v_version AS q
    ON
        f.workload_id = q.workload_id
        AND f.configuration_id = q.configuration_id
        AND f.device_id = q.device_id
        AND f.decided_version_id = q.version_id
INNER JOIN incident AS i
    ON
        f.workload_id = i.workload_id
        AND f.configuration_id = i.configuration_id
        AND f.device_id = i.device_id
        AND f.first_version_id = i.first_version_id
LEFT JOIN version AS e ON f.ended_version_id = e.id
LEFT JOIN marks AS m
    ON
        f.series_id = m.series_id
        AND f.direction = m.direction
        AND f.how = m.how
        AND f.first_version_id = m.first_version_id
LEFT JOIN finding_action AS l ON m.last_id = l.id
LEFT JOIN finding_action AS n ON m.settled_id = n.id
WHERE f.state <> 'withdrawn' AND q.is_judged = 1;
