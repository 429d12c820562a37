ALTER TABLE kernel ADD COLUMN sequence_saved_ns BIGINT;
ALTER TABLE kernel ADD COLUMN sequence_id BIGINT;
