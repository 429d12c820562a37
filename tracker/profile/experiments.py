"""Experiments of `tracker ab` by name: their sides, their numbers, and the branch that their runs are filed under."""

from __future__ import annotations

import re
from typing import Final

BASELINE: Final = "baseline"
CANDIDATE: Final = "candidate"
SIDES: Final = (BASELINE, CANDIDATE)
MOST_RUNS: Final = 80
"""Runs of an experiment at most, both sides together, where its user says nothing."""
LIMIT_S: Final = 2 * 3600.0
"""How long after its warm-up an experiment may begin pairs, where its user says nothing."""
_BRANCH: Final = re.compile(r"experiment (?P<name>E-\d+)")
"""A branch that no git repository can have: it holds a blank."""


def name_experiment(number: int) -> str:
    """Return what users call an experiment.

    >>> name_experiment(3)
    'E-3'
    """
    return f"E-{number}"


def branch_of_experiment(number: int) -> str:
    """Return the branch of the runs of an experiment.

    >>> branch_of_experiment(3)
    'experiment E-3'
    """
    return f"experiment {name_experiment(number)}"


def experiment_of_branch(branch: str) -> str:
    """Return the experiment whose runs are filed under a branch; "" for a branch of git.

    >>> experiment_of_branch("experiment E-3"), experiment_of_branch("E-3"), experiment_of_branch("")
    ('E-3', '', '')
    """
    found = _BRANCH.fullmatch(branch)
    return found["name"] if found else ""
