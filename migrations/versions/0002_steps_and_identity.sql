ALTER TABLE step ADD COLUMN marker_ns BIGINT;
ALTER TABLE step ADD COLUMN host_idle_ns BIGINT;
ALTER TABLE capture ADD COLUMN host_idle_ns BIGINT;
ALTER TABLE capture ADD COLUMN identity BYTEA;
CREATE INDEX ix_capture_identity ON capture (identity);
