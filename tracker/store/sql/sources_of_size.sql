-- Which files that are in have one of these sizes on disk? One row per file.
-- Parameters: sizes (list of source.bytes)
-- Columns: digest
SELECT s.digest
FROM source AS s
WHERE s.bytes IN :sizes
ORDER BY s.digest
