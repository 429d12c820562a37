ALTER TABLE idle ADD COLUMN behind_wait_ns BIGINT;
