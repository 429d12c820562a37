-- Which process groups do these runs have? One row per run and group, -1 for the calls that name none.
-- Parameters: run_ids (list)
-- Columns: run_id; number; group_role; group_size (NULL: unknown); member_ranks: by the files, '' where they do not
--   say; members: how many there are as far as can be told, captured: how many of them are in, both NULL where that
--   cannot be told; clock_offset_ns: how far clocks of members were apart that were corrected, NULL where none was
SELECT
    d.run_id,
    d.number,
    g.role AS group_role,
    NULLIF(g.size, -1) AS group_size,
    d.ranks AS member_ranks,
    d.members,
    d.captured,
    d.clock_offset_ns
FROM run_group AS d
INNER JOIN process_group AS g ON d.process_group_id = g.id
WHERE d.run_id IN :run_ids
ORDER BY d.run_id, d.number
