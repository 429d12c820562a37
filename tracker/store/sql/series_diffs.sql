-- How did these series differ, version by version? One row per series and version that was judged.
-- Parameters: series_ids (list)
-- Columns: series_id, version_id; baseline_diff, baseline_p, baseline_q, baseline_verdict, baseline_contribution,
--   calls_verdict, detectable, reason: against the accepted runs before; pinned_diff, pinned_p, pinned_q,
--   pinned_verdict, pinned_contribution: against the pinned version; best_version_id: the best one before; best_diff,
--   best_p, best_q, best_verdict: against it; rule_version. See the table diff_history
SELECT
    d.series_id,
    d.version_id,
    d.baseline_diff,
    d.baseline_p,
    d.baseline_q,
    d.baseline_verdict,
    d.baseline_contribution,
    d.calls_verdict,
    d.detectable,
    d.reason,
    d.pinned_diff,
    d.pinned_p,
    d.pinned_q,
    d.pinned_verdict,
    d.pinned_contribution,
    d.best_version_id,
    d.best_diff,
    d.best_p,
    d.best_q,
    d.best_verdict,
    d.rule_version
FROM series AS s
-- in this order: rows lie together by version, and a line has few of those
CROSS JOIN judged AS j
CROSS JOIN diff_history AS d
WHERE
    s.id IN :series_ids
    AND s.workload_id = j.workload_id
    AND s.configuration_id = j.configuration_id
    AND s.device_id = j.device_id
    AND j.version_id = d.version_id
    AND s.id = d.series_id
ORDER BY d.series_id, d.version_id
