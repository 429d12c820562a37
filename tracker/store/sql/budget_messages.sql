-- Which messages on budgets were made? One row per message and channel: that one is not met, where it was sent or is on
-- its way, and that one is met again.
-- Parameters: none
-- Columns: key, channel, event, workload: see the table
SELECT
    n.key,
    n.channel,
    n.event,
    n.workload
FROM notification AS n
WHERE n.event = 'budget_met' OR (n.event = 'budget' AND n.state IN ('pending', 'failed', 'sent'))
ORDER BY n.key, n.channel
