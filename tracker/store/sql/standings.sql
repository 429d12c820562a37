-- Where do findings stand? One row per finding that is not withdrawn.
-- Parameters: none
-- Columns: finding_id, version_id: that it is dated to; series_id, direction, change: what names it; state: as the
--   judgement says
SELECT
    f.id AS finding_id,
    f.first_version_id AS version_id,
    f.series_id,
    f.direction,
    f.how AS change,
    f.state
FROM finding AS f
WHERE f.state <> 'withdrawn'
ORDER BY f.id
