-- How many ranks has each active run of this track? One row per run, in the order in which they came in.
-- Parameters: workload_id, configuration_id, device_id
-- Columns: run_id; ranks: that came; ranks_expected: as a user stated it, ranks_handed_over: by its job, NULL: unknown;
--   last_rank_at_ns: when the last one came, NULL: before this was kept; ranks_awaited: NULL: it is a run of its track
SELECT
    r.id AS run_id,
    COUNT(c.rank) AS ranks,
    r.ranks_expected,
    r.ranks_handed_over,
    r.last_rank_at_ns,
    r.ranks_awaited
FROM run AS r
INNER JOIN capture AS c ON r.id = c.run_id
WHERE
    r.workload_id = :workload_id
    AND r.configuration_id = :configuration_id
    AND r.device_id = :device_id
    AND r.state = 'active'
GROUP BY r.id, r.ranks_expected, r.ranks_handed_over, r.last_rank_at_ns, r.ranks_awaited
ORDER BY r.id
