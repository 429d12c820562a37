-- Where did the time of each step go? One row per run, rank and step.
-- Parameters: run_ids (list)
-- Columns: run_id, rank, step; start_ns: since the first event of the capture; steps: how many the row is the mean of;
--   kind: what the step does, '' where all do the same;
--   marker_ns: of the host, where the step is a window of the device; the fields of tracker.profile.Breakdown;
--   whole_ns: what compute, exposed communication, exposed copies and idle time add up to
SELECT
    s.run_id,
    s.rank,
    s.step,
    s.start_ns,
    COALESCE(s.steps, 1) AS steps,
    s.timeline,
    s.kind,
    s.marker_ns,
    s.duration_ns,
    s.e2e_ns,
    COALESCE(
        s.compute_ns + s.exposed_communication_ns + COALESCE(s.exposed_copy_ns, 0) + s.idle_ns,
        CASE WHEN s.marker_ns IS NOT NULL THEN s.duration_ns END,
        s.e2e_ns,
        s.duration_ns
    ) AS whole_ns,
    s.compute_ns,
    s.communication_ns,
    s.overlap_ns,
    s.exposed_communication_ns,
    s.copy_ns,
    s.exposed_copy_ns,
    s.idle_ns,
    s.kernel_count,
    s.kernel_total_ns,
    s.compute_total_ns,
    s.communication_total_ns,
    s.copy_total_ns,
    s.unlinked_kernel_count,
    s.unlinked_kernel_total_ns,
    s.peak_allocated_bytes,
    s.peak_reserved_bytes,
    s.data_loading_ns,
    s.data_loading_idle_ns,
    s.host_idle_ns,
    s.bubble_ns,
    s.preparing_ns,
    s.samples_per_second
FROM step AS s
WHERE s.run_id IN :run_ids
ORDER BY s.run_id, s.rank, s.step
