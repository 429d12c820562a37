-- Where did the time of each rank go, over its whole capture? One row per run and rank.
-- Parameters: run_ids (list)
-- Columns: run_id, rank; stage: of the pipeline, NULL: none; host, device_ordinal; settings: the profiler's, JSON;
--   quality (ok, partial), quality_reason; steps: between markers, or summed up by the source;
--   the fields of tracker.profile.Breakdown; whole_ns: what compute, exposed communication, exposed copies and idle
--   time add up to
SELECT
    c.run_id,
    c.rank,
    c.stage,
    c.host,
    c.device_ordinal,
    c.settings,
    c.quality,
    c.quality_reason,
    (
        SELECT CAST(COALESCE(SUM(COALESCE(s.steps, 1)), 0) AS BIGINT)
        FROM step AS s
        WHERE s.run_id = c.run_id AND s.rank = c.rank
    ) AS steps,
    c.timeline,
    c.duration_ns,
    c.e2e_ns,
    COALESCE(
        c.compute_ns + c.exposed_communication_ns + COALESCE(c.exposed_copy_ns, 0) + c.idle_ns,
        c.e2e_ns,
        c.duration_ns
    ) AS whole_ns,
    c.compute_ns,
    c.communication_ns,
    c.overlap_ns,
    c.exposed_communication_ns,
    c.copy_ns,
    c.exposed_copy_ns,
    c.idle_ns,
    c.kernel_count,
    c.kernel_total_ns,
    c.compute_total_ns,
    c.communication_total_ns,
    c.copy_total_ns,
    c.unlinked_kernel_count,
    c.unlinked_kernel_total_ns,
    c.peak_allocated_bytes,
    c.peak_reserved_bytes,
    c.data_loading_ns,
    c.data_loading_idle_ns,
    c.host_idle_ns,
    c.bubble_ns,
    c.preparing_ns,
    c.samples_per_second
FROM capture AS c
WHERE c.run_id IN :run_ids
ORDER BY c.run_id, c.rank
