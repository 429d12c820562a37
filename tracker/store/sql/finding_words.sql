-- What did users say of findings? One row per word, in order.
-- Parameters: none
-- Columns: finding_id; mark_id; action, who, reason; when_ns; until_ns, until_version: end of a mute;
--   newest_version_id: of its track when it was said, NULL: not known; undoes_id: of an undo, the mark_id that it takes
--   back; is_undone: 1 where an undo took it back
SELECT
    f.id AS finding_id,
    a.id AS mark_id,
    a.action,
    a.who,
    a.reason,
    a.when_ns,
    a.until_ns,
    a.until_version,
    a.newest_version_id,
    a.undoes_id,
    CASE WHEN u.id IS NULL THEN 0 ELSE 1 END AS is_undone
FROM finding_action AS a
INNER JOIN finding AS f
    ON
        a.series_id = f.series_id
        AND a.direction = f.direction
        AND a.how = f.how
        AND a.first_version_id = f.first_version_id
LEFT JOIN finding_action AS u ON a.id = u.undoes_id
ORDER BY a.id
