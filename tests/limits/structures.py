"""Traces of one structure and any size: what costs most for its bytes. Name -> function of n, and the smallest n."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

Events = list[dict[str, Any]]


def op(name="a", ts=1.0, dur=5.0, *, cat="cpu_op", tid=1, pid=1, **args):
    event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    return {**event, "args": args} if args else event


def step(number, ts, dur):
    return op(f"ProfilerStep#{number}", ts, dur, cat="user_annotation")


def launch(ts=1.0, dur=1.0, number=1, tid=1, pid=1):
    args = {"correlation": number, "External id": number}
    return op("cudaLaunchKernel", ts, dur, cat="cuda_runtime", tid=tid, pid=pid, **args)


def kernel(name="k", ts=1.0, dur=5.0, stream=7, number=1, device=0):
    args = {"External id": number, "device": device, "stream": stream, "correlation": number}
    return op(name, ts, dur, cat="kernel", tid=stream, pid=device, **args)


def memory(ts, size, address=1, device=0):
    args = {"Total Allocated": 100, "Bytes": size, "Addr": address, "Device Id": device, "Device Type": 1}
    event = op("[memory]", ts, cat="cpu_instant_event", **args)
    return {**event, "ph": "i", "s": "t"}


def frame(number, ts, dur, name):
    return op(name, ts, dur, cat="python_function", **{"Python id": number + 1, "Python module id": number})


def flow(phase, ts, number, tid=1, pid=1):
    return {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": "ac2g", "name": "ac2g", "bp": "e"}


def collective(number, group, ranks):
    args = {
        "Collective name": "allreduce", "In msg nelems": 1, "Out msg nelems": 1, "Group size": len(ranks),
        "dtype": "Float", "Process Group Name": str(group), "Process Group Ranks": json.dumps(ranks),
    }  # fmt: skip
    return op("record_param_comms", 10 * number, 5, **args)


LONG_NAME: Final = ("void f<(int)4, (bool)1, g(at::Iter&)::{lambda(float)#1}> [clone .x]  " * 160)[:9_900]

STRUCTURES: Final[dict[str, tuple[Callable[[int], Events], int]]] = {
    "equal ops": (lambda n: [op()] * n, 3_000),
    "ops without time": (lambda n: [op(dur=0)] * n, 3_000),
    "nested ops": (lambda n: [op("a", i, 2 * (n - i)) for i in range(n)], 2_000),
    "names of one process each": (lambda n: [op(f"a{i}", pid=i // 20) for i in range(n)], 2_400),
    "nested ops of many names": (lambda n: [op(f"a{i}", i, 2 * (n - i)) for i in range(n)], 2_000),
    "crossing ops": (lambda n: [op("a", i, n) for i in range(n)], 2_000),
    "nested modules": (lambda n: [frame(i, i, 2 * (n - i), f"nn.Module: M_{i}") for i in range(n)] + [op()], 2_000),
    "ops in nested modules": (
        lambda n: [
            e for i in range(n) for e in (frame(i, i, 2 * (n - i), "nn.Module: M_0"), op(f"o{i}", i + 0.5, 0.1))
        ],
        1_000,
    ),
    "ops in nested frames": (
        lambda n: [
            e for i in range(n) for e in (frame(i, i, 2 * (n - i), f"a{i}.py(3): f"), op(f"o{i}", i + 0.5, 0.1))
        ],
        1_000,
    ),
    "one op per thread": (lambda n: [op("o", 1, n, tid=i) for i in range(n)], 2_000),
    "one op per process": (lambda n: [op("o", 1, n, tid=i, pid=i) for i in range(n)], 40),
    "one kernel per device": (lambda n: [kernel("k", i, 1, 7, i, device=i) for i in range(n)], 40),
    "one process and device each": (
        lambda n: [
            e
            for i in range(n)
            for e in (op("o", 1, n, tid=i, pid=i), launch(2, 1, i, i, i), kernel("k", 5, 5, 7, i, device=i))
        ],
        60,
    ),
    "one kernel per stream": (lambda n: [kernel("k", 0, n, i, i) for i in range(n)], 2_000),
    "one allocation per device": (
        lambda n: [e for i in range(n) for e in (kernel("k", i, 1, 7, i, device=i), memory(i, 5, i, device=i))],
        60,
    ),
    "kernels over all steps": (
        lambda n: (
            [step(i, i, 1) for i in range(n)]
            + [e for i in range(n) for e in (launch(0.1, n, i), kernel(f"k{i}", 0.5, n, 7, i))]
        ),
        250,
    ),
    "ops over all steps": (
        lambda n: [step(i, i, 1) for i in range(n)] + [op(f"o{i}", 0.2, n, tid=i) for i in range(n)],
        250,
    ),
    "an op per step": (
        lambda n: [e for i in range(n) for e in (step(i, i * 10, 10), op(f"a{i}", i * 10 + 1, 0.5))],
        300,
    ),
    "a kernel per step": (
        lambda n: [
            e
            for i in range(n)
            for e in (step(i, i * 10, 10), launch(i * 10 + 1, 1, i), kernel(f"k{i}", i * 10 + 3, 0.5, 7, i))
        ],
        300,
    ),
    "a stream per step": (
        lambda n: [e for i in range(n) for e in (step(i, i * 10, 10), kernel("k", 10 * i + 1, 5, i, i))],
        300,
    ),
    "equal steps": (lambda n: [step(i, 0, 100) for i in range(n)] + [op(f"o{i}", 1 + i / n) for i in range(n)], 300),
    "nested steps": (
        lambda n: [step(i, i, 2 * (n - i)) for i in range(n)] + [op(f"o{i}", 1 + i / n) for i in range(n)],
        300,
    ),
    "steps of one number": (lambda n: [e for i in range(n) for e in (step(1, i * 10, 5), op("o", i * 10 + 1, 1))], 300),
    "kernels of one launch": (
        lambda n: [launch(i, 1, 1) for i in range(n)] + [kernel("k", i, 1, 7, 1) for i in range(n)],
        2_000,
    ),
    "equal kernels": (lambda n: [e for i in range(n) for e in (launch(i, 1, i), kernel("k", 5, 1000, 7, i))], 1_500),
    "equal launches": (lambda n: [e for i in range(n) for e in (launch(1, 2, i), kernel("k", i, 1, 7, i))], 1_500),
    "nested launches": (
        lambda n: [e for i in range(n) for e in (launch(i, 2 * (n - i), i), kernel("k", i, 1, 7, i))],
        1_500,
    ),
    "one large group": (lambda n: [collective(i, 0, list(range(n))) for i in range(20)], 500),
    "many groups": (lambda n: [collective(i, i, [0, i + 1]) for i in range(n)], 500),
    "large shapes": (
        lambda n: [op("aten::mm", i, 1, **{"Input Dims": [[2**31 - 1] * 8] * 200}) for i in range(n)],
        100,
    ),
    "allocations": (lambda n: [op("a", 0, n)] + [memory(i, 2**30) for i in range(n)], 2_000),
    "allocations that stay": (lambda n: [op("a", 0, n)] + [memory(i, 100, i) for i in range(n)], 2_000),
    "allocations in nested ops": (
        lambda n: [e for i in range(n) for e in (op(f"a{i}", i, 2 * (n - i)), memory(i + 0.5, 100, i))],
        1_000,
    ),
    "an allocation per step": (
        lambda n: [e for i in range(n) for e in (step(i, i * 10, 10), memory(10 * i + 1, 100, i))],
        300,
    ),
    "arrows of one number": (
        lambda n: (
            [op("a", 0, n)]
            + [e for i in range(n) for e in (flow("s", i, 1), flow("f", i, 1, 7, 0), kernel("k", i, 0.4, 7, -1))]
        ),
        1_000,
    ),
    "long names of kernels": (lambda n: [kernel(f"{LONG_NAME}{i}", 1 + i, 0.5, 7, i) for i in range(n)], 100),
    "long names of ops": (lambda n: [op(f"{i}{LONG_NAME}", 1 + i, 0.5) for i in range(n)], 60),
    "one name": (lambda n: [op("<b>" * n, 1, 50), kernel("</script>" * n, 20, 20)], 20_000),
    "call stacks": (
        lambda n: [op("a", 1 + i, 0.5, **{"Call stack": f"f{i}.py(3): g;" * 30}) for i in range(n)],
        1_000,
    ),
    "backward of one forward": (
        lambda n: (
            [op("f", i, 0.5, **{"Sequence number": 1, "Fwd thread id": 0}) for i in range(n)]
            + [op("FBackward", 2 * n + i, 0.5, tid=2, **{"Sequence number": 1, "Fwd thread id": 1}) for i in range(n)]
        ),
        1_000,
    ),
    "gaps of one thread": (
        lambda n: (
            [op("a", 0, 9 * n)]
            + [e for i in range(n) for e in (launch(3 * i + 1, 0.5, i), kernel(f"k{i}", 3 * i + 2, 0.5, 7, i))]
        ),
        1_000,
    ),
}
"""Forty."""


def trace_of(events: Events) -> bytes:
    return json.dumps({"schemaVersion": 1, "traceEvents": events}, separators=(",", ":")).encode()
