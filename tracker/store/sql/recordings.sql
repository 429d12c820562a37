-- How were these runs recorded? One row per run.
-- Parameters: ids (a JSON object whose keys are the runs)
-- Columns: run_id; content: what its captures say of how it was recorded (JSON), NULL where it has none
SELECT
    r.id AS run_id,
    k.content
FROM run AS r
LEFT JOIN recording AS k ON r.recording_id = k.id
WHERE r.id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)
ORDER BY r.id
