-- How many profiles are in which state? One row per watched folder and state that has any.
-- Parameters: none
-- Columns: folder_id; state; profiles: how many that are there; arrived_ns: when the last new run came, NULL: none did
SELECT
    i.folder_id,
    i.state,
    SUM(CASE WHEN i.gone_ns IS NULL THEN 1 ELSE 0 END) AS profiles,
    MAX(i.arrived_ns) AS arrived_ns
FROM inbox AS i
GROUP BY i.folder_id, i.state
ORDER BY i.folder_id, i.state
