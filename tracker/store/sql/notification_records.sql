-- What was decided about messages so far? One row per message or decision, without its content.
-- Parameters: none
-- Columns: id, key, channel, event, counter, state, severity, incidents, covers, created_ns, next_try_ns, attempts,
--   claimed_until_ns, settled_ns: see the table
SELECT
    n.id,
    n.key,
    n.channel,
    n.event,
    n.counter,
    n.state,
    n.severity,
    n.incidents,
    n.covers,
    n.created_ns,
    n.next_try_ns,
    n.attempts,
    n.claimed_until_ns,
    n.settled_ns
FROM notification AS n
ORDER BY n.id
