"""Branches of a workload: what a pull request trains is judged against the main line, and never becomes a part of it.

The runs of branch `pr12` of workload `gpt` are filed under the workload `gpt @ pr12`: who asks about `gpt` finds the
main line alone, and whatever names a workload names the branch with it.
"""

from __future__ import annotations

import re
from typing import Final

_MARK: Final = " @ "
COMMIT_HASH: Final = re.compile(r"[0-9a-f]{7,40}")
_DESCRIBED: Final = re.compile(r"-g([0-9a-f]{7,40})$")
"""What `git describe` writes behind a tag."""


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


def hash_of_label(label: str) -> str:
    """Return the commit that the label of a version is, or that `git describe` wrote into it; "" for none, or a date.

    >>> hash_of_label("3fd0a41"), hash_of_label("v1.4-12-g3fd0a41"), hash_of_label("20260501"), hash_of_label("v1.4")
    ('3fd0a41', '3fd0a41', '', '')
    """
    label = label.lower()
    described = _DESCRIBED.search(label)
    found = described[1] if described else label
    is_hash = COMMIT_HASH.fullmatch(found) and (described or not found.isdecimal())
    return found if is_hash else ""
