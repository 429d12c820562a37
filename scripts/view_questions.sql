-- v_version: Which version of each workload is the newest, and what became of its step?
SELECT
    workload,
    device,
    configuration,
    version,
    is_judged,
    step_verdict,
    step_before_ns / 1000000.0 AS step_before_ms,
    step_after_ns / 1000000.0 AS step_after_ms
FROM v_version
WHERE is_newest = 1
ORDER BY workload, device, configuration;

-- v_run: How long was a step in each run of a workload, and how much of it did the device do nothing?
SELECT
    version,
    run_id,
    step_ns / 1000000.0 AS step_ms,
    idle_ns / 1000000.0 AS idle_ms
FROM v_run
WHERE workload = 'gpt' AND state = 'active'
ORDER BY version_ordinal, run_id;

-- v_step: Which steps of a version were the slowest?
SELECT
    run_id,
    rank,
    step,
    step_ns / 1000000.0 AS step_ms
FROM v_step
WHERE workload = 'gpt' AND version = 'v2'
ORDER BY step_ns DESC, run_id, rank, step
LIMIT 10;

-- v_op: Which operator became slower between two versions, per step of a rank?
WITH steps AS (
    SELECT
        version,
        SUM(steps) AS steps
    FROM v_step
    WHERE workload = 'gpt' AND version IN ('v1', 'v2')
    GROUP BY version
),

ops AS (
    SELECT
        version,
        op,
        SUM(device_self_ns) AS device_self_ns
    FROM v_op
    WHERE workload = 'gpt' AND version IN ('v1', 'v2') AND step IS NOT NULL
    GROUP BY version, op
),

sides AS (
    SELECT
        ops.op,
        SUM(CASE WHEN ops.version = 'v1' THEN 1.0 * ops.device_self_ns / steps.steps END) AS before_ns,
        SUM(CASE WHEN ops.version = 'v2' THEN 1.0 * ops.device_self_ns / steps.steps END) AS after_ns
    FROM ops
    INNER JOIN steps ON ops.version = steps.version
    GROUP BY ops.op
)

SELECT
    op,
    before_ns,
    after_ns,
    after_ns - before_ns AS slower_ns
FROM sides
WHERE after_ns > before_ns
ORDER BY slower_ns DESC, op
LIMIT 10;

-- v_kernel: Which kernels take most time in a version, and which operators launch them?
SELECT
    kernel,
    op,
    SUM(calls) AS calls,
    SUM(total_ns) / 1000000.0 AS total_ms
FROM v_kernel
WHERE workload = 'gpt' AND version = 'v2'
GROUP BY kernel, op
ORDER BY total_ms DESC, kernel, op
LIMIT 10;

-- v_communication: Which collectives does the device wait for, and for how long?
SELECT
    kind,
    group_role,
    SUM(calls) AS calls,
    SUM(exposed_ns) / 1000000.0 AS exposed_ms
FROM v_communication
WHERE workload = 'gpt' AND version = 'v2'
GROUP BY kind, group_role
ORDER BY exposed_ms DESC, kind, group_role;

-- v_idle: Why does the device do nothing, and where?
SELECT
    cause,
    place,
    SUM(idle_ns) / 1000000.0 AS idle_ms
FROM v_idle
WHERE workload = 'gpt' AND version = 'v2'
GROUP BY cause, place
ORDER BY idle_ms DESC, cause, place
LIMIT 10;

-- v_memory: Which operators allocate most?
SELECT
    op,
    component,
    SUM(calls) AS calls,
    SUM(bytes) AS bytes
FROM v_memory
WHERE workload = 'gpt' AND version = 'v2'
GROUP BY op, component
ORDER BY bytes DESC, op, component
LIMIT 10;

-- v_verdict: What got slower for sure in a version, the largest part of the step first?
SELECT
    kind,
    name,
    input_shapes,
    change_ratio,
    contribution_ratio
FROM v_verdict
WHERE workload = 'gpt' AND version = 'v2' AND verdict = 'REGRESSED'
ORDER BY contribution_ratio DESC, kind, name, input_shapes;

-- v_finding: Which regressions are open, and since which version?
SELECT
    finding_id,
    version,
    kind,
    name,
    change_ratio,
    state
FROM v_finding
WHERE workload = 'gpt' AND direction = 'regression' AND state IN ('new', 'persisting', 'acknowledged', 'muted')
ORDER BY finding_id;
