ALTER TABLE run ADD COLUMN document_of BIGINT;

CREATE INDEX ix_run_document_of ON run (document_of);
