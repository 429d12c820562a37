-- Which runs are other sources of these runs? One row per document, in order.
-- Parameters: run_ids (list of runs)
-- Columns: run_id: of the document; document_of: the run that it is of
SELECT
    r.id AS run_id,
    r.document_of
FROM run AS r
WHERE r.document_of IN :run_ids AND r.state = 'excluded' AND r.id <> r.document_of
ORDER BY r.id
