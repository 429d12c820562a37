"""Series with known changes on the noise of real runs: what dating of changes is scored by.

The repeats of one version say how each operator varies from run to run. Series are drawn from that (a smoothed
bootstrap: heavy tails and two levels stay what they are), and steps are put into them. Detectors may be tuned on one
half of the operators and are scored on the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.detectors import gates
from tests.real.per_run import Run, keys_of, table

RUNS = 60
SMOOTHING = 0.2  # of an operator's own standard deviation: 20 runs leave gaps that more runs would fill
HALVES = {"tuned on": 0, "held out": 1}
KINDS = ("as it is", "drifting", "heavy-tailed", "correlated")
SEED = 2026


def residuals(repeats: Sequence[Run]) -> np.ndarray:
    """(operators, runs): by how much, as a log, each run differs from an operator's level and from what all operators
    of the run share; operators of at least 0.01 % of the step.
    """
    values = table(repeats, keys_of(repeats))
    share = np.median(values, axis=1) / np.median([run.step_ns for run in repeats])
    logs = np.log(values[(share >= 1e-4) & ~np.isnan(values).any(axis=1)])
    logs = logs - np.median(logs, axis=1)[:, None]
    return logs - np.median(logs, axis=0)


def labelled(noise: np.ndarray, half: str, count: int, *, kind: str = "as it is", seed: int = SEED):
    """`gates.labelled` with the noise of one half of the operators, made worse in the way that `kind` says."""
    own = noise[HALVES[half] :: 2]

    def draw_noise(draw, number):
        one = own[draw.integers(len(own))]
        size = one.std()
        logs = draw.choice(one, RUNS) + SMOOTHING * size * draw.normal(0, 1, RUNS)
        if kind == "drifting":
            logs = logs + np.cumsum(draw.normal(0, 0.1 * size, RUNS))
        elif kind == "heavy-tailed":
            logs = logs + 0.02 * draw.standard_t(3, RUNS)
        elif kind == "correlated":
            for run in range(1, RUNS):
                logs[run] = 0.3 * logs[run - 1] + 0.95 * logs[run]
        return 100 * np.exp(logs)

    return gates.labelled(count, RUNS, draw_noise, seed=seed)


def recall_online(noise: np.ndarray, half: str, ratio: float, count: int, *, seed: int = SEED) -> float:
    """Of slow-downs by `ratio` from the 31st run on, the part that is told within the 30 runs, looking after each."""
    hits = 0
    for unchanged, _, _ in labelled(noise, half, count, seed=seed):
        values = unchanged.copy()
        values[30:] *= 1 + ratio
        hits += any(abs(place - 30) <= gates.NEAR for _, place in gates.replayed(values, first=33))
    return hits / count
