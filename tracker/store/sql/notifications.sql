-- Which messages are in the outbox? One row per message, the oldest first.
-- Parameters: states (list of states)
-- Columns: id, channel, event, state, severity, workload, title, created_ns, next_try_ns, attempts, last_error,
--   settled_ns: see the table
SELECT
    n.id,
    n.channel,
    n.event,
    n.state,
    n.severity,
    n.workload,
    n.title,
    n.created_ns,
    n.next_try_ns,
    n.attempts,
    n.last_error,
    n.settled_ns
FROM notification AS n
WHERE n.state IN :states
ORDER BY n.created_ns, n.id
