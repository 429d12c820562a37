"""Branches of a workload: what a pull request trains is judged against the main line, and never becomes a part of it.

The runs of branch `pr12` of workload `gpt` are filed under the workload `gpt @ pr12`: who asks about `gpt` finds the
main line alone, and whatever names a workload names the branch with it.
"""

from __future__ import annotations

from typing import Final

_MARK: Final = " @ "


def name_workload(main: str, branch: str) -> str:
    """Return the workload of a branch, or of the main line where `branch` is empty.

    >>> name_workload("gpt", "pr12"), name_workload("gpt", "")
    ('gpt @ pr12', 'gpt')
    """
    return f"{main}{_MARK}{branch}" if branch else main


def main_of(workload: str) -> str:
    """Return the workload of the main line that a workload is a branch of, or is itself.

    >>> main_of("gpt @ pr12"), main_of("gpt")
    ('gpt', 'gpt')
    """
    return workload.partition(_MARK)[0]


def branch_of(workload: str) -> str:
    """Return the branch of a workload, "" for the main line.

    >>> branch_of("gpt @ fix/attention"), branch_of("gpt")
    ('fix/attention', '')
    """
    return workload.partition(_MARK)[2]
