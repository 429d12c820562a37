ALTER TABLE finding_action ADD COLUMN newest_version_id BIGINT;

ALTER TABLE finding_action ADD COLUMN undoes_id BIGINT;

CREATE UNIQUE INDEX ix_finding_action_undoes_id ON finding_action (undoes_id);
