-- How many profiles are in which state? One row per watched folder and state that has any.
-- Parameters: none
-- Columns: folder_id; state; profiles: how many that are still there
SELECT
    i.folder_id,
    i.state,
    COUNT(*) AS profiles
FROM inbox AS i
WHERE i.gone_ns IS NULL
GROUP BY i.folder_id, i.state
ORDER BY i.folder_id, i.state
