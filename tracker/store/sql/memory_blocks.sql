-- Which single allocations were the largest? One row per allocation that is kept: the largest of each component.
-- Parameters: run_ids (list)
-- Columns: run_id, rank, step, component; op, input_shapes, input_types, module, phase; allocator: the innermost op;
--   call_stack_id; bytes; time_ns: from the first event; held_ns: until it was released in the capture; is_released: 1
--   or 0; NULL where the source does not say
SELECT
    b.run_id,
    b.rank,
    b.step,
    t.text AS component,
    n.text AS op,
    i.text AS input_shapes,
    y.text AS input_types,
    m.text AS module,
    h.text AS phase,
    a.text AS allocator,
    b.call_stack_id,
    b.bytes,
    b.time_ns,
    b.held_ns,
    b.is_released
FROM memory_block AS b
INNER JOIN op_key AS k ON b.op_key_id = k.id
INNER JOIN detail_text AS n ON k.name_id = n.id
INNER JOIN detail_text AS i ON k.input_shapes_id = i.id
INNER JOIN detail_text AS y ON k.input_types_id = y.id
INNER JOIN detail_text AS m ON k.module_id = m.id
INNER JOIN detail_text AS h ON k.phase_id = h.id
INNER JOIN detail_text AS t ON b.component_id = t.id
INNER JOIN detail_text AS a ON b.allocator_id = a.id
WHERE b.run_id IN :run_ids
ORDER BY b.run_id, b.rank, t.text, b.bytes DESC, b.ordinal
