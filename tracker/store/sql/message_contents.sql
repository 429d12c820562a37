-- What do these messages say? One row per message that was not forgotten.
-- Parameters: message_ids (list)
-- Columns: id, content: the message (JSON)
SELECT
    n.id,
    n.content
FROM notification AS n
WHERE n.id IN :message_ids AND n.content IS NOT NULL
ORDER BY n.id
