-- Which texts are these? One row per text.
-- Parameters: ids (a JSON object whose keys are the texts)
-- Columns: text_id; text
SELECT
    t.id AS text_id,
    t.text
FROM detail_text AS t
WHERE t.id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)
