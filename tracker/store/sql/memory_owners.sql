-- What was held when a component of memory held most? One row per run, rank, component, op, allocator and line of code.
-- Parameters: run_ids (list)
-- Columns: run_id, rank, component; op, input_shapes, input_types, module, phase; allocator: the innermost op;
--   call_stack_id; calls: blocks held; bytes: of them together; largest_bytes: of one; first_ns, first_step: when the
--   oldest was allocated; peak_ns, peak_step: the moment, in ns from the first event. The rows of a rank and component
--   sum to the peak; NULL where the source does not say
SELECT
    p.run_id,
    p.rank,
    t.text AS component,
    n.text AS op,
    i.text AS input_shapes,
    y.text AS input_types,
    m.text AS module,
    h.text AS phase,
    a.text AS allocator,
    p.call_stack_id,
    p.calls,
    p.bytes,
    p.largest_bytes,
    p.first_ns,
    p.first_step,
    p.peak_ns,
    p.peak_step
FROM memory_peak AS p
INNER JOIN op_key AS k ON p.op_key_id = k.id
INNER JOIN detail_text AS n ON k.name_id = n.id
INNER JOIN detail_text AS i ON k.input_shapes_id = i.id
INNER JOIN detail_text AS y ON k.input_types_id = y.id
INNER JOIN detail_text AS m ON k.module_id = m.id
INNER JOIN detail_text AS h ON k.phase_id = h.id
INNER JOIN detail_text AS t ON p.component_id = t.id
INNER JOIN detail_text AS a ON p.allocator_id = a.id
WHERE p.run_id IN :run_ids
ORDER BY p.run_id, p.rank, p.ordinal
