-- Which messages are on their way? One row per message, the oldest first.
-- Parameters: none
-- Columns: id, channel, incidents, content, created_ns, next_try_ns, attempts, claimed_until_ns: see the table
SELECT
    n.id,
    n.channel,
    n.incidents,
    n.content,
    n.created_ns,
    n.next_try_ns,
    n.attempts,
    n.claimed_until_ns
FROM notification AS n
WHERE n.state IN ('pending', 'failed')
ORDER BY n.created_ns, n.id
