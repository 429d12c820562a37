CREATE TABLE experiment (
    id BIGSERIAL NOT NULL, -- postgresql
    CONSTRAINT pk_experiment PRIMARY KEY (id), -- postgresql
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- sqlite
    state TEXT COLLATE "C" NOT NULL, baseline TEXT COLLATE "C" NOT NULL, candidate TEXT COLLATE "C" NOT NULL,
    baseline_commit TEXT COLLATE "C", candidate_commit TEXT COLLATE "C", finding_id BIGINT,
    host TEXT COLLATE "C" NOT NULL, devices TEXT COLLATE "C" NOT NULL, settings TEXT COLLATE "C" NOT NULL,
    seed BIGINT NOT NULL, limit_ratio DOUBLE PRECISION NOT NULL, noise_sd DOUBLE PRECISION,
    measured_by TEXT COLLATE "C" NOT NULL, started_at_ns BIGINT NOT NULL, ended_at_ns BIGINT,
    outcome TEXT COLLATE "C" NOT NULL, change_ratio DOUBLE PRECISION, low_ratio DOUBLE PRECISION,
    high_ratio DOUBLE PRECISION, counted_runs BIGINT NOT NULL
);

ALTER TABLE run ADD COLUMN experiment_id BIGINT;

ALTER TABLE run ADD COLUMN experiment_side TEXT COLLATE "C";

ALTER TABLE run ADD COLUMN experiment_pair BIGINT;

CREATE INDEX ix_run_experiment_id ON run (experiment_id);
