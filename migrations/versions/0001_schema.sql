-- All tables of tracker in the words of Postgres. `statements` in tracker/store/schema.py says how SQLite reads them.
-- A change is a migration of its own, together with tracker/schema/levels.py or the classes in tracker/store/tables.

CREATE TABLE step (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, step BIGINT NOT NULL, start_ns BIGINT NOT NULL,
    timeline TEXT COLLATE "C" NOT NULL, duration_ns BIGINT, e2e_ns BIGINT, compute_ns BIGINT, communication_ns BIGINT,
    overlap_ns BIGINT, exposed_communication_ns BIGINT, copy_ns BIGINT, exposed_copy_ns BIGINT, idle_ns BIGINT,
    kernel_count BIGINT, kernel_total_ns BIGINT, compute_total_ns BIGINT, communication_total_ns BIGINT,
    copy_total_ns BIGINT, unlinked_kernel_count BIGINT, unlinked_kernel_total_ns BIGINT, peak_allocated_bytes BIGINT,
    peak_reserved_bytes BIGINT, data_loading_ns BIGINT, bubble_ns BIGINT, preparing_ns BIGINT,
    samples_per_second DOUBLE PRECISION, steps BIGINT, data_loading_idle_ns BIGINT,
    CONSTRAINT pk_step PRIMARY KEY (run_id, rank, step)
) PARTITION BY RANGE (run_id);

CREATE TABLE op (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, step BIGINT NOT NULL, op_key_id BIGINT NOT NULL, calls BIGINT,
    host_total_ns BIGINT, host_self_ns BIGINT, device_total_ns BIGINT, device_self_ns BIGINT, min_ns BIGINT,
    max_ns BIGINT, sum_squares_ns2 DOUBLE PRECISION, kernel_count BIGINT, call_stack_id BIGINT,
    host_min_ns BIGINT, host_max_ns BIGINT,
    CONSTRAINT pk_op PRIMARY KEY (run_id, rank, step, op_key_id)
) PARTITION BY RANGE (run_id);

CREATE TABLE op_tree (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, contexts BYTEA NOT NULL,
    CONSTRAINT pk_op_tree PRIMARY KEY (run_id, rank)
) PARTITION BY RANGE (run_id);

CREATE TABLE kernel (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, step BIGINT NOT NULL, kernel_key_id BIGINT NOT NULL,
    op_key_id BIGINT NOT NULL, category_id BIGINT NOT NULL, calls BIGINT, total_ns BIGINT, min_ns BIGINT,
    max_ns BIGINT, sum_squares_ns2 DOUBLE PRECISION, wait_ns BIGINT, bytes BIGINT, block_num BIGINT,
    CONSTRAINT pk_kernel PRIMARY KEY (run_id, rank, step, kernel_key_id, op_key_id, category_id)
) PARTITION BY RANGE (run_id);

CREATE TABLE kernel_metric (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, kernel_key_id BIGINT NOT NULL, metric_id BIGINT NOT NULL,
    calls BIGINT, mean DOUBLE PRECISION, min DOUBLE PRECISION, max DOUBLE PRECISION,
    CONSTRAINT pk_kernel_metric PRIMARY KEY (run_id, rank, kernel_key_id, metric_id)
) PARTITION BY RANGE (run_id);

CREATE TABLE communication (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, ordinal BIGINT NOT NULL, step BIGINT NOT NULL,
    kind_id BIGINT NOT NULL, process_group_id BIGINT NOT NULL, data_type_id BIGINT NOT NULL,
    size_class_bytes BIGINT NOT NULL, calls BIGINT, bytes BIGINT, total_ns BIGINT, min_ns BIGINT, max_ns BIGINT,
    sum_squares_ns2 DOUBLE PRECISION, transit_ns BIGINT, wait_ns BIGINT, synchronization_ns BIGINT, idle_ns BIGINT,
    exposed_ns BIGINT, exposed_wait_ns BIGINT, ranks_transit_ns BIGINT, ranks_wait_ns BIGINT,
    ranks_exposed_wait_ns BIGINT, paired_calls BIGINT,
    CONSTRAINT pk_communication PRIMARY KEY (run_id, rank, ordinal)
) PARTITION BY RANGE (run_id);

CREATE TABLE collective_call (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, calls BYTEA NOT NULL,
    CONSTRAINT pk_collective_call PRIMARY KEY (run_id, rank)
) PARTITION BY RANGE (run_id);

CREATE TABLE communication_task (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, ordinal BIGINT NOT NULL, communication BIGINT NOT NULL,
    name_id BIGINT NOT NULL, plane_id BIGINT NOT NULL, calls BIGINT, total_ns BIGINT, min_ns BIGINT, max_ns BIGINT,
    CONSTRAINT pk_communication_task PRIMARY KEY (run_id, rank, ordinal)
) PARTITION BY RANGE (run_id);

CREATE TABLE communication_link (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, ordinal BIGINT NOT NULL, communication BIGINT NOT NULL,
    transport_id BIGINT NOT NULL, source BIGINT NOT NULL, target BIGINT NOT NULL, packet_bytes BIGINT NOT NULL,
    calls BIGINT, packets BIGINT, bytes BIGINT, transit_ns BIGINT, large_packet_ratio DOUBLE PRECISION,
    CONSTRAINT pk_communication_link PRIMARY KEY (run_id, rank, ordinal)
) PARTITION BY RANGE (run_id);

CREATE TABLE memory (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, step BIGINT NOT NULL, op_key_id BIGINT NOT NULL,
    component_id BIGINT NOT NULL, calls BIGINT, bytes BIGINT, held_ns BIGINT, unreleased_bytes BIGINT,
    CONSTRAINT pk_memory PRIMARY KEY (run_id, rank, step, op_key_id, component_id)
) PARTITION BY RANGE (run_id);

CREATE TABLE memory_allocator (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, step BIGINT NOT NULL, op_key_id BIGINT NOT NULL,
    component_id BIGINT NOT NULL, allocator_id BIGINT NOT NULL, calls BIGINT, bytes BIGINT, held_ns BIGINT,
    unreleased_bytes BIGINT,
    CONSTRAINT pk_memory_allocator PRIMARY KEY (run_id, rank, step, op_key_id, component_id, allocator_id)
) PARTITION BY RANGE (run_id);

CREATE TABLE memory_peak (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, ordinal BIGINT NOT NULL, component_id BIGINT NOT NULL,
    op_key_id BIGINT NOT NULL, allocator_id BIGINT NOT NULL, call_stack_id BIGINT, calls BIGINT, bytes BIGINT,
    largest_bytes BIGINT, first_ns BIGINT, first_step BIGINT, peak_ns BIGINT, peak_step BIGINT,
    CONSTRAINT pk_memory_peak PRIMARY KEY (run_id, rank, ordinal)
) PARTITION BY RANGE (run_id);

CREATE TABLE memory_block (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, ordinal BIGINT NOT NULL, step BIGINT NOT NULL,
    op_key_id BIGINT NOT NULL, component_id BIGINT NOT NULL, allocator_id BIGINT NOT NULL, call_stack_id BIGINT,
    bytes BIGINT, time_ns BIGINT NOT NULL, held_ns BIGINT, is_released BIGINT,
    CONSTRAINT pk_memory_block PRIMARY KEY (run_id, rank, ordinal)
) PARTITION BY RANGE (run_id);

CREATE TABLE memory_curve (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, ordinal BIGINT NOT NULL, component_id BIGINT NOT NULL,
    time_ns BIGINT NOT NULL, allocated_bytes BIGINT, reserved_bytes BIGINT,
    CONSTRAINT pk_memory_curve PRIMARY KEY (run_id, rank, ordinal)
) PARTITION BY RANGE (run_id);

CREATE TABLE counter (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, ordinal BIGINT NOT NULL, step BIGINT NOT NULL,
    source_id BIGINT NOT NULL, name_id BIGINT NOT NULL, attribute_id BIGINT NOT NULL, calls BIGINT,
    mean DOUBLE PRECISION, min DOUBLE PRECISION, max DOUBLE PRECISION,
    CONSTRAINT pk_counter PRIMARY KEY (run_id, rank, ordinal)
) PARTITION BY RANGE (run_id);

CREATE TABLE api (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, ordinal BIGINT NOT NULL, step BIGINT NOT NULL,
    level_id BIGINT NOT NULL, name_id BIGINT NOT NULL, calls BIGINT, total_ns BIGINT, self_ns BIGINT, min_ns BIGINT,
    max_ns BIGINT,
    CONSTRAINT pk_api PRIMARY KEY (run_id, rank, ordinal)
) PARTITION BY RANGE (run_id);

CREATE TABLE detail_text (
    id BIGSERIAL NOT NULL, digest BYTEA NOT NULL, text TEXT COLLATE "C" NOT NULL,
    CONSTRAINT pk_detail_text PRIMARY KEY (id),
    CONSTRAINT uq_detail_text_digest UNIQUE (digest)
);

CREATE TABLE op_key (
    id BIGSERIAL NOT NULL, name_id BIGINT NOT NULL, input_shapes_id BIGINT NOT NULL, input_types_id BIGINT NOT NULL,
    module_id BIGINT NOT NULL, phase_id BIGINT NOT NULL,
    CONSTRAINT pk_op_key PRIMARY KEY (id),
    CONSTRAINT uq_op_key_texts UNIQUE (name_id, input_shapes_id, input_types_id, module_id, phase_id)
);

CREATE TABLE kernel_key (
    id BIGSERIAL NOT NULL, digest BYTEA NOT NULL, name TEXT COLLATE "C" NOT NULL,
    canonical_name TEXT COLLATE "C" NOT NULL, type TEXT COLLATE "C" NOT NULL, core_type TEXT COLLATE "C" NOT NULL,
    input_shapes TEXT COLLATE "C" NOT NULL, input_types TEXT COLLATE "C" NOT NULL,
    input_formats TEXT COLLATE "C" NOT NULL,
    CONSTRAINT pk_kernel_key PRIMARY KEY (id),
    CONSTRAINT uq_kernel_key_digest UNIQUE (digest)
);

CREATE TABLE process_group (
    id BIGSERIAL NOT NULL, digest BYTEA NOT NULL, role TEXT COLLATE "C" NOT NULL, size BIGINT NOT NULL,
    CONSTRAINT pk_process_group PRIMARY KEY (id),
    CONSTRAINT uq_process_group_digest UNIQUE (digest)
);

CREATE TABLE call_stack (
    id BIGSERIAL NOT NULL, parent_id BIGINT NOT NULL, frame_id BIGINT NOT NULL,
    CONSTRAINT pk_call_stack PRIMARY KEY (id),
    CONSTRAINT uq_call_stack_parent_id_frame_id UNIQUE (parent_id, frame_id)
);

CREATE TABLE sample (
    run_id BIGINT NOT NULL, series_id BIGINT NOT NULL, value DOUBLE PRECISION NOT NULL,
    mean DOUBLE PRECISION NOT NULL, sd DOUBLE PRECISION, min DOUBLE PRECISION, p10 DOUBLE PRECISION,
    p90 DOUBLE PRECISION, max DOUBLE PRECISION, calls DOUBLE PRECISION, share DOUBLE PRECISION,
    rank_spread DOUBLE PRECISION, steps INTEGER NOT NULL, intermittent BOOLEAN NOT NULL,
    CONSTRAINT pk_sample PRIMARY KEY (run_id, series_id)
)
WITHOUT ROWID -- sqlite
;
CREATE INDEX ix_sample_series_id_run_id ON sample (series_id, run_id);

CREATE TABLE sample_array (
    run_id BIGINT NOT NULL, -- postgresql
    run_id INTEGER NOT NULL, -- sqlite
    numbers BYTEA NOT NULL,
    CONSTRAINT pk_sample_array PRIMARY KEY (run_id)
);

CREATE TABLE advice (
    run_id BIGINT NOT NULL, -- postgresql
    run_id INTEGER NOT NULL, -- sqlite
    rule_version INTEGER NOT NULL, content TEXT COLLATE "C" NOT NULL,
    CONSTRAINT pk_advice PRIMARY KEY (run_id)
);

CREATE TABLE threshold (
    id BIGSERIAL NOT NULL, workload_id BIGINT NOT NULL, configuration_id BIGINT NOT NULL, device_id BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL, pattern TEXT COLLATE "C" NOT NULL, name TEXT COLLATE "C" NOT NULL,
    value DOUBLE PRECISION NOT NULL, who TEXT COLLATE "C" NOT NULL, when_ns BIGINT NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    CONSTRAINT pk_threshold PRIMARY KEY (id),
    CONSTRAINT uq_threshold_place UNIQUE (workload_id, configuration_id, device_id, kind, pattern, name)
);

CREATE TABLE notification (
    id BIGSERIAL NOT NULL, "key" TEXT COLLATE "C" NOT NULL, channel TEXT COLLATE "C" NOT NULL,
    event TEXT COLLATE "C" NOT NULL, counter INTEGER NOT NULL, state TEXT COLLATE "C" NOT NULL,
    severity TEXT COLLATE "C" NOT NULL, workload TEXT COLLATE "C" NOT NULL, title TEXT COLLATE "C" NOT NULL,
    incidents TEXT COLLATE "C" NOT NULL, covers TEXT COLLATE "C" NOT NULL, content TEXT COLLATE "C",
    created_ns BIGINT NOT NULL, next_try_ns BIGINT, attempts INTEGER NOT NULL, claimed_by TEXT COLLATE "C",
    claimed_until_ns BIGINT, last_error TEXT COLLATE "C", settled_ns BIGINT,
    CONSTRAINT pk_notification PRIMARY KEY (id),
    CONSTRAINT uq_notification_key_channel UNIQUE ("key", channel)
);
CREATE INDEX ix_notification_state_next_try_ns ON notification (state, next_try_ns);

CREATE TABLE silence (
    id BIGSERIAL NOT NULL, op TEXT COLLATE "C" NOT NULL, workload TEXT COLLATE "C" NOT NULL,
    device TEXT COLLATE "C" NOT NULL, who TEXT COLLATE "C" NOT NULL, reason TEXT COLLATE "C" NOT NULL,
    created_ns BIGINT NOT NULL, until_ns BIGINT NOT NULL, ended_ns BIGINT,
    CONSTRAINT pk_silence PRIMARY KEY (id)
);

CREATE TABLE workload (
    id BIGSERIAL NOT NULL, name TEXT COLLATE "C" NOT NULL,
    CONSTRAINT pk_workload PRIMARY KEY (id),
    CONSTRAINT uq_workload_name UNIQUE (name)
);

CREATE TABLE device (
    id BIGSERIAL NOT NULL, vendor TEXT COLLATE "C" NOT NULL, model TEXT COLLATE "C" NOT NULL,
    CONSTRAINT pk_device PRIMARY KEY (id),
    CONSTRAINT uq_device_vendor_model UNIQUE (vendor, model)
);

CREATE TABLE recording (
    id BIGSERIAL NOT NULL, digest BYTEA NOT NULL, content TEXT COLLATE "C" NOT NULL,
    CONSTRAINT pk_recording PRIMARY KEY (id),
    CONSTRAINT uq_recording_digest UNIQUE (digest)
);

CREATE TABLE lease (
    name TEXT COLLATE "C" NOT NULL, owner TEXT COLLATE "C" NOT NULL, taken_ns BIGINT NOT NULL,
    heartbeat_ns BIGINT NOT NULL, expires_ns BIGINT NOT NULL, done_ns BIGINT,
    CONSTRAINT pk_lease PRIMARY KEY (name)
);

CREATE TABLE watcher (
    owner TEXT COLLATE "C" NOT NULL, host TEXT COLLATE "C" NOT NULL, pid BIGINT NOT NULL,
    program TEXT COLLATE "C" NOT NULL, every_ns BIGINT, started_ns BIGINT NOT NULL, heartbeat_ns BIGINT NOT NULL,
    round_ns BIGINT, ended_ns BIGINT, outcome TEXT COLLATE "C" NOT NULL, error TEXT COLLATE "C" NOT NULL,
    error_ns BIGINT, told BOOLEAN NOT NULL, job TEXT COLLATE "C", job_ns BIGINT,
    CONSTRAINT pk_watcher PRIMARY KEY (owner)
);

CREATE TABLE watched_folder (
    id BIGSERIAL NOT NULL, digest BYTEA NOT NULL, host TEXT COLLATE "C" NOT NULL, path TEXT COLLATE "C" NOT NULL,
    layout TEXT COLLATE "C" NOT NULL, first_seen_ns BIGINT NOT NULL, looked_ns BIGINT NOT NULL,
    error TEXT COLLATE "C" NOT NULL, error_ns BIGINT,
    CONSTRAINT pk_watched_folder PRIMARY KEY (id),
    CONSTRAINT uq_watched_folder_digest UNIQUE (digest)
);

CREATE TABLE expectation (
    id BIGSERIAL NOT NULL, folder_id BIGINT NOT NULL, workload TEXT COLLATE "C" NOT NULL, every_ns BIGINT NOT NULL,
    first_seen_ns BIGINT NOT NULL, told_ns BIGINT,
    CONSTRAINT pk_expectation PRIMARY KEY (id),
    CONSTRAINT uq_expectation_folder_id_workload UNIQUE (folder_id, workload)
);

CREATE TABLE inbox (
    id BIGSERIAL NOT NULL, digest BYTEA NOT NULL, folder_id BIGINT NOT NULL, path TEXT COLLATE "C" NOT NULL,
    workload TEXT COLLATE "C" NOT NULL, version TEXT COLLATE "C" NOT NULL, state TEXT COLLATE "C" NOT NULL,
    state_ns BIGINT NOT NULL, content BYTEA NOT NULL, size_bytes BIGINT NOT NULL, written_ns BIGINT NOT NULL,
    changed_ns BIGINT NOT NULL, first_seen_ns BIGINT NOT NULL, gone_ns BIGINT, attempts INTEGER NOT NULL,
    next_try_ns BIGINT NOT NULL, reason TEXT COLLATE "C" NOT NULL, run_ids TEXT COLLATE "C" NOT NULL,
    arrived_ns BIGINT, told BOOLEAN NOT NULL, deaths BIGINT,
    CONSTRAINT pk_inbox PRIMARY KEY (id),
    CONSTRAINT uq_inbox_digest UNIQUE (digest)
);

CREATE TABLE configuration (
    id BIGSERIAL NOT NULL, workload_id BIGINT NOT NULL, fingerprint BYTEA NOT NULL, title TEXT COLLATE "C" NOT NULL,
    CONSTRAINT pk_configuration PRIMARY KEY (id),
    CONSTRAINT uq_configuration_workload_id_fingerprint UNIQUE (workload_id, fingerprint),
    CONSTRAINT fk_configuration_workload_id_workload FOREIGN KEY(workload_id) REFERENCES workload (id)
);

CREATE TABLE version (
    id BIGSERIAL NOT NULL, workload_id BIGINT NOT NULL, label TEXT COLLATE "C" NOT NULL, ordinal BIGINT NOT NULL,
    commit_id TEXT COLLATE "C", parent TEXT COLLATE "C", note TEXT COLLATE "C", pinned BOOLEAN DEFAULT false NOT NULL,
    CONSTRAINT pk_version PRIMARY KEY (id),
    CONSTRAINT uq_version_workload_id_label UNIQUE (workload_id, label),
    CONSTRAINT fk_version_workload_id_workload FOREIGN KEY(workload_id) REFERENCES workload (id)
);

CREATE TABLE series (
    id BIGSERIAL NOT NULL, digest BYTEA NOT NULL, workload_id BIGINT NOT NULL, configuration_id BIGINT NOT NULL,
    device_id BIGINT NOT NULL, kind TEXT COLLATE "C" NOT NULL, metric TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL, input_shapes TEXT COLLATE "C" NOT NULL, part TEXT COLLATE "C" NOT NULL,
    CONSTRAINT pk_series PRIMARY KEY (id),
    CONSTRAINT uq_series_digest UNIQUE (digest),
    CONSTRAINT fk_series_workload_id_workload FOREIGN KEY(workload_id) REFERENCES workload (id),
    CONSTRAINT fk_series_configuration_id_configuration FOREIGN KEY(configuration_id) REFERENCES configuration (id),
    CONSTRAINT fk_series_device_id_device FOREIGN KEY(device_id) REFERENCES device (id)
);
CREATE INDEX ix_series_workload_id_configuration_id_device_id_kind ON series (workload_id, configuration_id, device_id, kind);

CREATE TABLE configuration_value (
    configuration_id BIGINT NOT NULL, "key" TEXT COLLATE "C" NOT NULL, value TEXT COLLATE "C" NOT NULL,
    CONSTRAINT pk_configuration_value PRIMARY KEY (configuration_id, "key"),
    CONSTRAINT fk_configuration_value_configuration_id_configuration FOREIGN KEY(configuration_id) REFERENCES configuration (id)
);

CREATE TABLE run (
    id BIGSERIAL NOT NULL, -- postgresql
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- sqlite
    workload_id BIGINT NOT NULL, configuration_id BIGINT NOT NULL, version_id BIGINT NOT NULL,
    device_id BIGINT NOT NULL, state TEXT COLLATE "C" NOT NULL, state_reason TEXT COLLATE "C" NOT NULL,
    ranks_expected BIGINT, world_size BIGINT, started_at_ns BIGINT, ended_at_ns BIGINT, rules_version BIGINT,
    note TEXT COLLATE "C", sample_rules BIGINT, recording_id BIGINT,
    CONSTRAINT pk_run PRIMARY KEY (id), -- postgresql
    CONSTRAINT ck_run_state CHECK (state IN ('active', 'excluded', 'deleted')),
    CONSTRAINT fk_run_workload_id_workload FOREIGN KEY(workload_id) REFERENCES workload (id),
    CONSTRAINT fk_run_configuration_id_configuration FOREIGN KEY(configuration_id) REFERENCES configuration (id),
    CONSTRAINT fk_run_version_id_version FOREIGN KEY(version_id) REFERENCES version (id),
    CONSTRAINT fk_run_device_id_device FOREIGN KEY(device_id) REFERENCES device (id)
);
CREATE INDEX ix_run_version_id ON run (version_id);
CREATE INDEX ix_run_workload_id_state ON run (workload_id, state);

CREATE TABLE run_fact (
    run_id BIGINT NOT NULL, kind TEXT COLLATE "C" NOT NULL, "key" TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    CONSTRAINT pk_run_fact PRIMARY KEY (run_id, kind, "key"),
    CONSTRAINT fk_run_fact_run_id_run FOREIGN KEY(run_id) REFERENCES run (id)
);
CREATE INDEX ix_run_fact_kind_key ON run_fact (kind, "key");

CREATE TABLE run_group (
    run_id BIGINT NOT NULL, number BIGINT NOT NULL, process_group_id BIGINT NOT NULL, ranks TEXT COLLATE "C" NOT NULL,
    members BIGINT, captured BIGINT, clock_offset_ns BIGINT,
    CONSTRAINT pk_run_group PRIMARY KEY (run_id, number),
    CONSTRAINT fk_run_group_run_id_run FOREIGN KEY(run_id) REFERENCES run (id)
);

CREATE TABLE source (
    id BIGSERIAL NOT NULL, run_id BIGINT NOT NULL, rank BIGINT NOT NULL, format TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL, bytes BIGINT, digest BYTEA NOT NULL,
    CONSTRAINT pk_source PRIMARY KEY (id),
    CONSTRAINT uq_source_digest UNIQUE (digest),
    CONSTRAINT fk_source_run_id_run FOREIGN KEY(run_id) REFERENCES run (id)
);
CREATE INDEX ix_source_run_id_rank ON source (run_id, rank);

CREATE TABLE capture (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, host TEXT COLLATE "C" NOT NULL, device_ordinal BIGINT, stage BIGINT,
    dp_index BIGINT, tp_index BIGINT, pp_index BIGINT, ep_index BIGINT, cp_index BIGINT,
    settings TEXT COLLATE "C" NOT NULL, quality TEXT COLLATE "C" NOT NULL, quality_reason TEXT COLLATE "C" NOT NULL,
    started_at_ns BIGINT, ended_at_ns BIGINT, timeline TEXT COLLATE "C" NOT NULL, duration_ns BIGINT, e2e_ns BIGINT,
    compute_ns BIGINT, communication_ns BIGINT, overlap_ns BIGINT, exposed_communication_ns BIGINT, copy_ns BIGINT,
    exposed_copy_ns BIGINT, idle_ns BIGINT, kernel_count BIGINT, kernel_total_ns BIGINT, compute_total_ns BIGINT,
    communication_total_ns BIGINT, copy_total_ns BIGINT, unlinked_kernel_count BIGINT,
    unlinked_kernel_total_ns BIGINT, peak_allocated_bytes BIGINT, peak_reserved_bytes BIGINT, data_loading_ns BIGINT,
    bubble_ns BIGINT, preparing_ns BIGINT, samples_per_second DOUBLE PRECISION, pruned_at_ns BIGINT,
    data_loading_idle_ns BIGINT,
    CONSTRAINT pk_capture PRIMARY KEY (run_id, rank),
    CONSTRAINT fk_capture_run_id_run FOREIGN KEY(run_id) REFERENCES run (id)
);

CREATE TABLE judged_version (
    workload_id BIGINT NOT NULL, configuration_id BIGINT NOT NULL, device_id BIGINT NOT NULL,
    version_id BIGINT NOT NULL, rests_on BYTEA NOT NULL, runs TEXT COLLATE "C" NOT NULL,
    base_runs TEXT COLLATE "C" NOT NULL, step_before_ns DOUBLE PRECISION, step_after_ns DOUBLE PRECISION,
    shared_factor DOUBLE PRECISION, step_verdict TEXT COLLATE "C", net DOUBLE PRECISION NOT NULL,
    peak DOUBLE PRECISION NOT NULL, levels BYTEA NOT NULL,
    CONSTRAINT pk_judged_version PRIMARY KEY (workload_id, configuration_id, device_id, version_id)
)
WITHOUT ROWID -- sqlite
;

CREATE TABLE verdict (
    version_id BIGINT NOT NULL, series_id BIGINT NOT NULL, level_version_id BIGINT NOT NULL,
    verdict TEXT COLLATE "C" NOT NULL, decided TEXT COLLATE "C", reason TEXT COLLATE "C" NOT NULL,
    change DOUBLE PRECISION, judged_change DOUBLE PRECISION, p DOUBLE PRECISION, q DOUBLE PRECISION,
    contribution DOUBLE PRECISION, detectable DOUBLE PRECISION, base_runs BIGINT NOT NULL,
    CONSTRAINT pk_verdict PRIMARY KEY (version_id, series_id)
)
WITHOUT ROWID -- sqlite
;

CREATE TABLE fact (
    version_id BIGINT NOT NULL, series_id BIGINT NOT NULL, what TEXT COLLATE "C" NOT NULL,
    value_before DOUBLE PRECISION NOT NULL, value_after DOUBLE PRECISION NOT NULL,
    CONSTRAINT pk_fact PRIMARY KEY (version_id, series_id, what)
)
WITHOUT ROWID -- sqlite
;

CREATE TABLE finding (
    id BIGSERIAL NOT NULL, -- postgresql
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- sqlite
    workload_id BIGINT NOT NULL, configuration_id BIGINT NOT NULL, device_id BIGINT NOT NULL,
    series_id BIGINT NOT NULL, direction TEXT COLLATE "C" NOT NULL, how TEXT COLLATE "C" NOT NULL,
    first_version_id BIGINT NOT NULL, decided_version_id BIGINT NOT NULL, reference_level_id BIGINT NOT NULL,
    reference_runs TEXT COLLATE "C" NOT NULL, new_runs TEXT COLLATE "C" NOT NULL, size DOUBLE PRECISION NOT NULL,
    q DOUBLE PRECISION, contribution DOUBLE PRECISION NOT NULL, value_before DOUBLE PRECISION, value_after DOUBLE PRECISION,
    calls_before DOUBLE PRECISION, calls_after DOUBLE PRECISION, is_leaf BOOLEAN NOT NULL, was_faster BOOLEAN NOT NULL,
    state TEXT COLLATE "C" NOT NULL, ended_version_id BIGINT, ended_by_version_id BIGINT,
    CONSTRAINT pk_finding PRIMARY KEY (id), -- postgresql
    CONSTRAINT uq_finding_series_id_direction_how_first_version_id UNIQUE (series_id, direction, how, first_version_id)
);

CREATE INDEX ix_finding_workload_id_configuration_id_device_id_state ON finding (workload_id, configuration_id, device_id, state);

CREATE TABLE finding_action (
    id BIGSERIAL NOT NULL, workload_id BIGINT NOT NULL, configuration_id BIGINT NOT NULL, device_id BIGINT NOT NULL,
    series_id BIGINT NOT NULL, direction TEXT COLLATE "C" NOT NULL, how TEXT COLLATE "C" NOT NULL,
    first_version_id BIGINT NOT NULL, action TEXT COLLATE "C" NOT NULL, who TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL, when_ns BIGINT NOT NULL, until_ns BIGINT, until_version TEXT COLLATE "C",
    CONSTRAINT pk_finding_action PRIMARY KEY (id)
);

CREATE INDEX ix_finding_action_workload_id_configuration_id_device_id ON finding_action (workload_id, configuration_id, device_id);

CREATE TABLE incident (
    id BIGSERIAL NOT NULL, -- postgresql
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- sqlite
    workload_id BIGINT NOT NULL, configuration_id BIGINT NOT NULL, device_id BIGINT NOT NULL,
    first_version_id BIGINT NOT NULL, before_ns DOUBLE PRECISION, after_ns DOUBLE PRECISION,
    operators_ns DOUBLE PRECISION, new_ns DOUBLE PRECISION, gone_ns DOUBLE PRECISION, machine_ns DOUBLE PRECISION,
    other_operators_ns DOUBLE PRECISION, beside_ns DOUBLE PRECISION,
    CONSTRAINT pk_incident PRIMARY KEY (id), -- postgresql
    CONSTRAINT uq_incident_first UNIQUE (workload_id, configuration_id, device_id, first_version_id)
);
