-- Of what is nothing told for now? One row per silence that holds.
-- Parameters: now_ns (ns since 1970 UTC)
-- Columns: silence_id; op, workload, device: patterns; who, reason; created_ns, until_ns
SELECT
    s.id AS silence_id,
    s.op,
    s.workload,
    s.device,
    s.who,
    s.reason,
    s.created_ns,
    s.until_ns
FROM silence AS s
WHERE s.until_ns > :now_ns AND s.ended_ns IS NULL
ORDER BY s.until_ns, s.id
