CREATE TABLE idle (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, ordinal BIGINT NOT NULL, step BIGINT NOT NULL,
    cause_id BIGINT NOT NULL, place_id BIGINT NOT NULL, ns BIGINT, gaps BIGINT,
    CONSTRAINT pk_idle PRIMARY KEY (run_id, rank, ordinal)
) PARTITION BY RANGE (run_id);

CREATE TABLE queue (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, ordinal BIGINT NOT NULL, step BIGINT NOT NULL,
    stream BIGINT NOT NULL, kernels BIGINT, lead_ns BIGINT, max_lead_ns BIGINT, queued BIGINT,
    CONSTRAINT pk_queue PRIMARY KEY (run_id, rank, ordinal)
) PARTITION BY RANGE (run_id);
