-- What did users do to the findings of this line? One row per action, in order.
-- Parameters: workload_id, configuration_id, device_id
-- Columns: series_id, direction, change, first_run_id: the finding; after_run_id: newest run of the line then; action,
--   who, reason; when_ns; until_ns, until_version: end of a mute
SELECT
    a.series_id,
    a.direction,
    a.change,
    a.first_run_id,
    a.after_run_id,
    a.action,
    a.who,
    a.reason,
    a.when_ns,
    a.until_ns,
    a.until_version
FROM finding_action AS a
WHERE
    a.workload_id = :workload_id
    AND a.configuration_id = :configuration_id
    AND a.device_id = :device_id
ORDER BY a.id
