-- What did users say of findings? One row per word, in order.
-- Parameters: none
-- Columns: finding_id; action, who, reason; when_ns; until_ns, until_version: end of a mute
SELECT
    f.id AS finding_id,
    a.action,
    a.who,
    a.reason,
    a.when_ns,
    a.until_ns,
    a.until_version
FROM finding_action AS a
INNER JOIN finding AS f
    ON
        a.series_id = f.series_id
        AND a.direction = f.direction
        AND a.how = f.how
        AND a.first_version_id = f.first_version_id
ORDER BY a.id
