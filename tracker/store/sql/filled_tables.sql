-- Which ranks have rows in the tables of details? One row per run and rank.
-- Parameters: run_ids (list), in each part as well, so that Postgres plans for the partitions of these runs alone
-- Columns: run_id, rank; has_totals: 1 where it is known how much the kernels of the rank took together;
--   has_communication, has_memory, has_api, has_idle, has_metrics, has_curve, has_counters: 1 where there are rows of
--   this rank in the tables communication, memory, api, idle, kernel_metric, memory_curve, counter; else 0
SELECT
    c.run_id,
    c.rank,
    CASE WHEN c.kernel_total_ns IS NOT NULL THEN 1 ELSE 0 END AS has_totals,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM communication AS d
                WHERE d.run_id IN :run_ids AND d.run_id = c.run_id AND d.rank = c.rank
            )
            THEN 1
        ELSE 0
    END AS has_communication,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM memory AS d
                WHERE d.run_id IN :run_ids AND d.run_id = c.run_id AND d.rank = c.rank
            )
            THEN 1
        ELSE 0
    END AS has_memory,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM api AS d
                WHERE d.run_id IN :run_ids AND d.run_id = c.run_id AND d.rank = c.rank
            )
            THEN 1
        ELSE 0
    END AS has_api,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM idle AS d
                WHERE d.run_id IN :run_ids AND d.run_id = c.run_id AND d.rank = c.rank
            )
            THEN 1
        ELSE 0
    END AS has_idle,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM kernel_metric AS d
                WHERE d.run_id IN :run_ids AND d.run_id = c.run_id AND d.rank = c.rank
            )
            THEN 1
        ELSE 0
    END AS has_metrics,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM memory_curve AS d
                WHERE d.run_id IN :run_ids AND d.run_id = c.run_id AND d.rank = c.rank
            )
            THEN 1
        ELSE 0
    END AS has_curve,
    CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM counter AS d
                WHERE d.run_id IN :run_ids AND d.run_id = c.run_id AND d.rank = c.rank
            )
            THEN 1
        ELSE 0
    END AS has_counters
FROM capture AS c
WHERE c.run_id IN :run_ids
ORDER BY c.run_id, c.rank
