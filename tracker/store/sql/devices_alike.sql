-- Which devices may be this one: of its vendor, where one of the two has no named chip? One row per device.
-- Parameters: device_id
-- Columns: id, model
SELECT
    other.id,
    other.model
FROM device AS own
INNER JOIN device AS other ON own.vendor = other.vendor AND own.id <> other.id
WHERE
    own.id = :device_id
    AND own.vendor <> ''
    AND (own.model = 'unknown' OR other.model = 'unknown')
ORDER BY other.id
