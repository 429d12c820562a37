-- Where do the files of runs lie, and how was each measured? One row per run and file, of active runs and of documents
-- of others.
-- Parameters: all_runs (1: yes), run_ids (list: only runs of their versions, read when all_runs = 0); pattern of LIKE
--   (paths of files, ! escapes)
-- Columns: run_id; workload_id, version_id; document_of: the run that it is another source of, NULL: none;
--   started_at_ns, ended_at_ns: UTC, NULL: unknown; settings: of the profiler on one of its ranks, JSON; job_id (NULL:
--   not known); path: of the file; files: of the run, whatever their paths;
--   is_pruned: 1 where the details of a rank were dropped, else 0
SELECT
    r.id AS run_id,
    r.workload_id,
    r.version_id,
    r.document_of,
    r.started_at_ns,
    r.ended_at_ns,
    (
        SELECT MIN(c.settings)
        FROM capture AS c
        WHERE c.run_id = r.id
    ) AS settings,
    (
        SELECT MIN(f.value)
        FROM run_fact AS f
        WHERE f.run_id = r.id AND f.kind = 'fact' AND f.key = 'job_id'
    ) AS job_id,
    o.path,
    (
        SELECT COUNT(*)
        FROM source AS n
        WHERE n.run_id = r.id
    ) AS files,
    (
        SELECT COUNT(*)
        FROM capture AS p
        WHERE p.run_id = r.id AND p.pruned_at_ns IS NOT NULL
    ) > 0 AS is_pruned
FROM run AS r
INNER JOIN source AS o ON r.id = o.run_id
WHERE
    (
        (r.state = 'excluded' AND r.document_of IS NOT NULL)
        OR r.state = 'active'
    )
    AND o.path LIKE :pattern ESCAPE '!'
    AND (:all_runs = 1 OR r.version_id IN (
        SELECT s.version_id FROM run AS s
        WHERE s.id IN :run_ids
    ))
ORDER BY r.id, o.id
