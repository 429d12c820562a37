-- What do these recordings say? One row each.
-- Parameters: ids (a JSON object whose keys are the recordings)
-- Columns: recording_id; content: what captures say of how they were recorded (JSON)
SELECT
    k.id AS recording_id,
    k.content
FROM recording AS k
WHERE k.id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)
ORDER BY k.id
