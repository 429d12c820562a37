-- How did the memory of the allocator grow and shrink? One row per run, rank, component and point in time.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0)
-- Columns: run_id, rank, component; time_ns: since the first event of the capture; allocated_bytes, reserved_bytes:
--   NULL where the source does not say
SELECT
    m.run_id,
    m.rank,
    t.text AS component,
    m.time_ns,
    m.allocated_bytes,
    m.reserved_bytes
FROM memory_curve AS m
INNER JOIN detail_text AS t ON m.component_id = t.id
WHERE
    m.run_id IN :run_ids
    AND (:all_ranks = 1 OR m.rank IN :ranks)
ORDER BY m.run_id, m.rank, t.text, m.time_ns, m.ordinal
