-- Which processes watch, or did? One row per process, the newest first.
-- Parameters: none
-- Columns: owner; host; pid; program (its version); every_ns (NULL: one round only); started_ns; heartbeat_ns;
--   round_ns: end of its last round, NULL: none yet; ended_ns (NULL: it did not say so); outcome; error, error_ns:
--   its last one; told; job, job_ns: what it is at, and since when, NULL: nothing
SELECT
    w.owner,
    w.host,
    w.pid,
    w.program,
    w.every_ns,
    w.started_ns,
    w.heartbeat_ns,
    w.round_ns,
    w.ended_ns,
    w.outcome,
    w.error,
    w.error_ns,
    w.told,
    w.job,
    w.job_ns
FROM watcher AS w
ORDER BY w.started_ns DESC, w.owner ASC
