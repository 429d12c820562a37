"""Made families of series with known noise, for stories and gates; every draw is seeded."""

from __future__ import annotations

import numpy as np


def family(series=100, runs=8, *, noise=0.01, seed=0):
    """(series, runs) medians around 100 with `noise` as standard deviation of their logs; half as noisy to twice."""
    draw = np.random.default_rng(seed)
    sizes = noise * np.exp(draw.uniform(np.log(0.5), np.log(2.0), (series, 1)))
    return 100.0 * np.exp(draw.normal(0.0, 1.0, (series, runs)) * sizes)


def slower(values, rows, factor):
    """A copy of `values` with `rows` multiplied by `factor`."""
    changed = values.copy()
    changed[rows] *= factor
    return changed


def operators(series=500, runs=8, *, seed=0):
    """Runs of a made model: kernels of unlike duration, 2 % noise, 0.5 % drift per run, and heavy tails for a tenth."""
    draw = np.random.default_rng(seed)
    duration = np.exp(draw.normal(3.0, 2.0, (series, 1)))
    noise = draw.normal(0, 0.02, (series, runs))
    wild = draw.random(series) < 0.1
    noise[wild] = 0.04 * draw.standard_t(3, (int(wild.sum()), runs))
    return duration * np.exp(noise + draw.normal(0, 0.005, runs))
