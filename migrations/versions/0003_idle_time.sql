CREATE TABLE idle (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, ordinal BIGINT NOT NULL, step BIGINT NOT NULL,
    cause_id BIGINT NOT NULL, place_id BIGINT NOT NULL, ns BIGINT, gaps BIGINT,
    CONSTRAINT pk_idle PRIMARY KEY (run_id, rank, ordinal)
) PARTITION BY RANGE (run_id);
