-- In which lines is a mute over? One row per line.
-- Parameters: now_ns: ns since 1970 UTC
-- Columns: workload_id, configuration_id, device_id
SELECT DISTINCT
    f.workload_id,
    f.configuration_id,
    f.device_id
FROM finding AS f
WHERE f.state = 'muted' AND f.until_ns <= :now_ns
ORDER BY f.workload_id, f.configuration_id, f.device_id
