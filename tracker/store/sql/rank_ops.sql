-- How long did each rank spend in each op? One row per rank and op.
-- Parameters: run_ids (list); all_ranks (1: yes), ranks (list, read when all_ranks = 0); in_steps (1: without step -1);
--   all_steps (1: yes), steps (list, read when all_steps = 0); step_kind ('': all);
--   launching (1: only ops that launched device events themselves); all_names (1: yes), digests (list, of texts, read
--   when all_names = 0)
-- Columns: rank; op_key_id: see op_keys.sql; calls; host_total_ns, host_self_ns; device_total_ns, device_self_ns. A
--   sum leaves out what is not known
SELECT
    d.rank,
    d.op_key_id,
    CAST(SUM(d.calls) AS BIGINT) AS calls,
    CAST(SUM(d.host_total_ns) AS BIGINT) AS host_total_ns,
    CAST(SUM(d.host_self_ns) AS BIGINT) AS host_self_ns,
    CAST(SUM(d.device_total_ns) AS BIGINT) AS device_total_ns,
    CAST(SUM(d.device_self_ns) AS BIGINT) AS device_self_ns
FROM op AS d
WHERE
    d.run_id IN :run_ids
    AND (:all_ranks = 1 OR d.rank IN :ranks)
    AND (:in_steps = 0 OR d.step >= 0)
    AND (:all_steps = 1 OR d.step IN :steps)
    AND (
        :step_kind = ''
        OR EXISTS (
            SELECT 1
            FROM step AS n
            WHERE n.run_id = d.run_id AND n.rank = d.rank AND n.step = d.step AND n.kind = :step_kind
        )
    )
    AND (:launching = 0 OR d.kernel_count > 0)
    AND (
        :all_names = 1
        OR d.op_key_id IN (
            SELECT k.id
            FROM op_key AS k
            INNER JOIN detail_text AS t ON k.name_id = t.id
            WHERE t.digest IN :digests
        )
    )
GROUP BY d.rank, d.op_key_id
ORDER BY d.rank, d.op_key_id
