"""How often undisturbed jobs name a suspect, and jobs with a slow rank that rank: as docs/statistics.md says."""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest

from tests.conftest import slow

ROOT = Path(__file__).parents[2]
JOBS = 600
NOISES = (0.05, 0.3)


@pytest.fixture(scope="module")
def simulation():
    sys.path.insert(0, str(ROOT / "scripts"))
    yield import_module("simulate_slow_ranks")
    sys.path.remove(str(ROOT / "scripts"))


def test_at_most_9_of_100_undisturbed_jobs_name_a_suspect(simulation):
    """Steps that follow each other by 0.5, with the most noise: two of the worst cells, and both together."""
    cells = [(3, 10), (4, 3)]
    shares = [simulation.count_suspicions(JOBS, *cell, noise=0.3, rho=0.5)[0] for cell in cells]
    assert max(shares) <= 0.09
    assert sum(shares) / len(cells) <= 0.055


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_no_size_of_job_names_suspects_in_9_of_100(simulation, rho):
    shares = []
    for ranks, steps, noise in product(simulation.RANKS, simulation.STEPS_OF_SUSPECTS, NOISES):
        shares.append(simulation.count_suspicions(JOBS, ranks, steps, noise=noise, rho=rho)[0])
    assert max(shares) <= 0.09
    assert sum(shares) / len(shares) <= 0.055


@pytest.mark.parametrize(
    ("ranks", "steps", "least"), [(2, 3, 0.75), (2, 5, 1.0), (4, 3, 1.0), slow((8, 3, 1.0)), slow((64, 3, 1.0))]
)
def test_rank_of_twice_the_time_is_named_after_few_steps(simulation, ranks, steps, least):
    assert simulation.count_suspicions(200, ranks, steps, slow=1, slower=2.0)[1] >= least
