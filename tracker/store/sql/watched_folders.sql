-- Which folders are watched? One row per host and folder.
-- Parameters: none
-- Columns: id; host (empty: the same for all machines); path; layout; first_seen_ns, looked_ns: moments; error,
--   error_ns: why it could not be looked at, and since when
SELECT
    f.id,
    f.host,
    f.path,
    f.layout,
    f.first_seen_ns,
    f.looked_ns,
    f.error,
    f.error_ns
FROM watched_folder AS f
ORDER BY f.path, f.host
