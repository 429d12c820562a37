"""How often tracker calls an innocent rank slow or suspects it, and how often it names the slow one, in simulated jobs.

    python scripts/simulate_slow_ranks.py [--jobs 1000] [--slower 1.3] [--noise 0.05 --noise 0.2]
    python scripts/simulate_slow_ranks.py --suspects [--jobs 600] [--slower 2] [--noise 0.05 --noise 0.3]

The own time of a rank in a step is lognormal: `noise` is the standard deviation of its logarithm, `rho` the correlation
of neighbouring steps (a first-order autoregression). The first ranks are slower by a factor, in all steps. Prints the
tables of docs/statistics.md: who is SLOW in ten minutes, and with --suspects who is SLOW or SUSPECT in six.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.detect.peers import judge
from tracker.results import SLOW

if TYPE_CHECKING:
    from tracker.columns import F64

RANKS: Final = (2, 3, 4, 8, 16, 64)
STEPS: Final = (3, 6, 10, 50)
RHO: Final = (0.0, 0.5, 0.9)
STEPS_OF_SUSPECTS: Final = (3, 4, 5, 10, 50)
RHO_OF_SUSPECTS: Final = (0.0, 0.5, 0.8)


def draw_job(
    draw: np.random.Generator, ranks: int, steps: int, *, slow: int, slower: float, noise: float, rho: float
) -> F64:
    """Return the own times of a job, a row per rank and a column per step; the first `slow` ranks are slow."""
    delay = draw.normal(size=(ranks, steps))
    for step in range(1, steps):
        delay[:, step] = rho * delay[:, step - 1] + np.sqrt(1 - rho**2) * delay[:, step]
    own: F64 = np.exp(noise * delay)
    own[:slow] *= slower
    return own


def count_verdicts(
    jobs: int, ranks: int, steps: int, *, slow: int, slower: float = 1.3, noise: float = 0.05, rho: float = 0.0,
    seed: int = 1,
) -> tuple[float, float]:  # fmt: skip
    """Return the share of jobs in which an innocent rank is SLOW, and that in which all slow ranks are."""
    draw = np.random.default_rng(seed)
    accused = named = 0
    for _ in range(jobs):
        own = draw_job(draw, ranks, steps, slow=slow, slower=slower, noise=noise, rho=rho)
        is_slow = [verdict == SLOW for verdict in judge(own).verdict]
        accused += any(is_slow[slow:])
        named += all(is_slow[:slow])
    return accused / jobs, named / jobs


def count_suspicions(
    jobs: int, ranks: int, steps: int, *, slow: int = 0, slower: float = 2.0, noise: float = 0.05, rho: float = 0.0,
    seed: int = 1,
) -> tuple[float, float]:  # fmt: skip
    """Return the share of jobs in which an innocent rank is SLOW or SUSPECT, and that in which all slow ranks are."""
    draw = np.random.default_rng([seed, ranks, steps, slow])
    accused = named = 0
    for _ in range(jobs):
        own = draw_job(draw, ranks, steps, slow=slow, slower=slower, noise=noise, rho=rho)
        is_named = [verdict is not None for verdict in judge(own).verdict]
        accused += any(is_named[slow:])
        named += all(is_named[:slow])
    return accused / jobs, named / jobs


def lines_of_suspects(jobs: int, slower: float, noises: Sequence[float]) -> Iterator[str]:
    """Yield the lines of the table of suspects, and a sentence per rho about all of its cells. A cell: of 100
    undisturbed jobs those that name any rank, by noise; and of jobs with one slow rank those that name it, at the first
    noise.
    """
    yield f"| ranks | rho | {' | '.join(f'{steps} steps' for steps in STEPS_OF_SUSPECTS)} |"
    yield f"|{'---|' * (2 + len(STEPS_OF_SUSPECTS))}"
    of_rho: dict[float, list[float]] = {rho: [] for rho in RHO_OF_SUSPECTS}
    for ranks in RANKS:
        for rho in RHO_OF_SUSPECTS:
            cells = []
            for steps in STEPS_OF_SUSPECTS:
                accused = [count_suspicions(jobs, ranks, steps, noise=noise, rho=rho)[0] for noise in noises]
                _, named = count_suspicions(jobs, ranks, steps, slow=1, slower=slower, noise=noises[0], rho=rho)
                of_rho[rho] += accused
                cells.append(" / ".join([*(f"{100 * share:.1f}" for share in accused), f"{100 * named:.0f}"]))
            yield f"| {ranks} | {rho:g} | {' | '.join(cells)} |"
    yield ""
    for rho, shares in of_rho.items():
        mean, most = 100 * float(np.mean(shares)), 100 * max(shares)
        yield f"rho {rho:g}: {mean:.1f} of 100 undisturbed jobs name a rank, {most:.1f} in the worst cell"


def table_lines(jobs: int, slower: float, noise: float) -> Iterator[str]:
    """Yield the lines of a table in Markdown. A cell: of 100 jobs the accused innocents, the most of jobs with none,
    one and two slow ranks; the jobs in which the one slow rank is named, and those in which both are.
    """
    yield f"| ranks, noise {noise:.0%} | rho | {' | '.join(f'{steps} steps' for steps in STEPS)} |"
    yield f"|{'---|' * (2 + len(STEPS))}"
    for ranks in RANKS:
        for rho in RHO:
            cells = [_cell(jobs, ranks, steps, slower=slower, noise=noise, rho=rho) for steps in STEPS]
            yield f"| {ranks} | {rho:g} | {' | '.join(cells)} |"


def _cell(jobs: int, ranks: int, steps: int, *, slower: float, noise: float, rho: float) -> str:
    seed = 1000 * ranks + steps
    counts = [
        count_verdicts(jobs, ranks, steps, slow=slow, slower=slower, noise=noise, rho=rho, seed=seed)
        for slow in (0, 1, 2)
        if 2 * slow <= ranks
    ]
    most_accused = max(accused for accused, _ in counts)
    named = [f"{100 * share:.0f}" for _, share in counts[1:]]
    return " / ".join([f"{100 * most_accused:.1f}", *named])


def main() -> None:
    """Print the chosen tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suspects", action="store_true")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--slower", type=float)
    parser.add_argument("--noise", type=float, action="append")
    options = parser.parse_args()
    if options.suspects:
        for line in lines_of_suspects(options.jobs or 600, options.slower or 2.0, options.noise or (0.05, 0.3)):
            print(line, flush=True)
        return
    for noise in options.noise or (0.05, 0.2):
        for line in table_lines(options.jobs or 1000, options.slower or 1.3, noise):
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
