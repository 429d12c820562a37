-- Which ranks are at the ends of the links of a run? One row per pair of ranks.
-- Parameters: run_id
-- Columns: source, target
SELECT DISTINCT
    d.source,
    d.target
FROM communication_link AS d
WHERE d.run_id = :run_id AND d.source >= 0 AND d.target >= 0
ORDER BY d.source, d.target
