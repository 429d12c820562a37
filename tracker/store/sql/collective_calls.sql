-- Which collective calls did a rank take part in? One row, packed; none where it has none.
-- Parameters: run_id, rank
-- Columns: calls: see store/packing.py; host; started_at_ns: UTC of the start of the capture, from which they
--   count
SELECT
    d.calls,
    c.host,
    c.started_at_ns
FROM collective_call AS d
INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
WHERE
    d.rank = :rank
    AND d.run_id = :run_id
