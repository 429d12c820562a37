ALTER TABLE run ADD COLUMN ranks_handed_over BIGINT;

ALTER TABLE run ADD COLUMN last_rank_at_ns BIGINT;

ALTER TABLE run ADD COLUMN ranks_awaited BIGINT;
