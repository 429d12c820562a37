-- Which of these runs of an NPU have a host that stands in for its device, of which there are no data, as an earlier
--   program read them? One row per run.
-- Parameters: run_ids (list)
-- Columns: run_id
SELECT c.run_id
FROM capture AS c
INNER JOIN run AS r ON c.run_id = r.id
INNER JOIN device AS v ON r.device_id = v.id
WHERE
    c.run_id IN :run_ids
    AND v.vendor = 'Huawei'
    AND c.timeline = 'host'
    AND c.idle_ns IS NOT NULL
GROUP BY c.run_id
ORDER BY c.run_id
