-- Which files were read for these runs? One row per file.
-- Parameters: run_ids (list)
-- Columns: run_id; rank: the lowest one that the file holds; format; path; bytes: size on disk; digest: of the
--   decompressed content
SELECT
    s.run_id,
    s.rank,
    s.format,
    s.path,
    s.bytes,
    s.digest
FROM source AS s
WHERE s.run_id IN :run_ids
ORDER BY s.run_id, s.rank, s.path, s.digest
