CREATE TABLE communication_wait (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, ordinal BIGINT NOT NULL, communication BIGINT NOT NULL,
    peer BIGINT NOT NULL, is_global BIGINT NOT NULL, calls BIGINT, total_ns BIGINT, max_ns BIGINT,
    CONSTRAINT pk_communication_wait PRIMARY KEY (run_id, rank, ordinal)
) PARTITION BY RANGE (run_id);
