-- What are the collective calls of a rank? One row per row of communication.
-- Parameters: run_id, rank
-- Columns: ordinal; kind; group_role; data_type_id: number of a text; exposed_ns: not hidden by compute
SELECT
    d.ordinal,
    k.text AS kind,
    g.role AS group_role,
    d.data_type_id,
    d.exposed_ns
FROM communication AS d
INNER JOIN detail_text AS k ON d.kind_id = k.id
INNER JOIN process_group AS g ON d.process_group_id = g.id
WHERE d.run_id = :run_id AND d.rank = :rank
ORDER BY d.ordinal
