-- Which collectives did the ranks of a run take part in? One row per rank, step and collective.
-- Parameters: run_id
-- Columns: rank, step, kind, group_role, size_class_bytes (-1: unknown); calls; total_ns; exposed_ns: not hidden
--   by compute
SELECT
    d.rank,
    d.step,
    k.text AS kind,
    g.role AS group_role,
    d.size_class_bytes,
    d.calls,
    d.total_ns,
    d.exposed_ns
FROM communication AS d
INNER JOIN process_group AS g ON d.process_group_id = g.id
INNER JOIN detail_text AS k ON d.kind_id = k.id
WHERE d.run_id = :run_id
ORDER BY d.rank, d.ordinal
