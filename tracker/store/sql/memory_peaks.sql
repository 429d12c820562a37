-- How much memory did each component hold at most? One row per run, rank and component, over the whole capture.
-- Parameters: run_ids (list)
-- Columns: run_id, rank, component; allocated_bytes, reserved_bytes: the largest, NULL where the source does not say
WITH peak AS (
    SELECT
        m.run_id,
        m.rank,
        m.component_id,
        MAX(m.allocated_bytes) AS allocated_bytes,
        MAX(m.reserved_bytes) AS reserved_bytes
    FROM memory_curve AS m
    WHERE m.run_id IN :run_ids
    GROUP BY m.run_id, m.rank, m.component_id
)

SELECT
    p.run_id,
    p.rank,
    t.text AS component,
    p.allocated_bytes,
    p.reserved_bytes
FROM peak AS p
INNER JOIN detail_text AS t ON p.component_id = t.id
ORDER BY p.run_id, p.rank, t.text
