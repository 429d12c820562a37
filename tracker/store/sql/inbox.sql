-- Which profiles did watchers find? One row per profile.
-- Parameters: folder_id (watched_folder.id, NULL = all); open_only (1: only what is not in the database yet, and there)
-- Columns: id; folder_id, folder, host: where it lies; path; workload, version; state, state_ns (since when); content
--   (digest); size_bytes; written_ns, changed_ns, first_seen_ns, gone_ns: moments, see the data dictionary; attempts;
--   next_try_ns; reason; run_ids (text); arrived_ns; told; deaths (0: none)
SELECT
    i.id,
    i.folder_id,
    f.path AS folder,
    f.host,
    i.path,
    i.workload,
    i.version,
    i.state,
    i.state_ns,
    i.content,
    i.size_bytes,
    i.written_ns,
    i.changed_ns,
    i.first_seen_ns,
    i.gone_ns,
    i.attempts,
    i.next_try_ns,
    i.reason,
    i.run_ids,
    i.arrived_ns,
    i.told,
    COALESCE(i.deaths, 0) AS deaths
FROM inbox AS i
INNER JOIN watched_folder AS f ON i.folder_id = f.id
WHERE
    (CAST(:folder_id AS BIGINT) IS NULL OR i.folder_id = :folder_id)
    AND (:open_only = 0 OR (i.state NOT IN ('ingested', 'passed') AND i.gone_ns IS NULL))
ORDER BY i.id
