"""Made lines of runs: many quiet ops, so that a real database has something to centre and to judge with."""

from __future__ import annotations

import numpy as np

from tests.factories import EPOCH_NS, save

OPS = 40


def runs(
    store, version, changed=None, *, count=3, start=0, shared=1.0, without=(), more_ops=(), idle_ns=0, ops=OPS, **more
):
    """`count` runs of `version`: 40 `ops` of 1 ms with 0.5 % noise, and a step of what they add up to.

    `changed`: op -> factor. `shared`: what all ops are multiplied by. `without`: ops that these runs do not have.
    `more_ops`: further entries of ops, as in factories.rows. `idle_ns`: of a step beside its ops. `start`: number of
    the first run, which decides its noise and when it ran.
    """
    ids = []
    for number in range(start, start + count):
        noise = np.exp(np.random.default_rng(number).normal(0, 0.005, ops)) * shared
        times = {f"op{at:02}": int(1_000_000 * noise[at]) for at in range(ops)}
        times = {
            name: int(time * (changed or {}).get(name, 1.0)) for name, time in times.items() if name not in without
        }
        times |= {name: int(value) for name, value in (changed or {}).items() if name not in times and value > 100}
        total = sum(times.values()) + sum(entry[1] for entry in more_ops)
        step_ns = total + idle_ns
        ids += save(
            store, version, ops=[*times.items(), *more_ops], kernels=[("gemm", total)], steps=3, step_ns=step_ns,
            e2e_ns=step_ns, started_at_ns=EPOCH_NS + number * 10**12, **more,
        )  # fmt: skip
    return ids
