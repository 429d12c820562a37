"""Words and numbers that mean the same in readers, timeline, store and reports."""

from __future__ import annotations

from typing import Final

MISSING: Final = -(2**63)
"""The int64 that stands for "the source does not say"; NULL in the database, `-` in a report."""

NO_STEP: Final = -1
"""The step of what lies outside all step markers."""

UNLINKED_OP: Final = "(unlinked)"
"""Name of the op that stands for device events without a launch in the capture."""

NO_OP: Final = "(no op)"
"""Name of the op that stands for device events whose launch lies in no op."""

MODULE_CALLS: Final = "module"
"""`source` of the rows of the table `counter` that count the calls of a module by its frames: `name` is its path."""

PHASES: Final = ("", "backward", "clear_grad", "dataloader", "forward", "optimizer")
"""The parts of a training step; the empty word where nothing says."""

OF_A_RUN: Final = frozenset({"job_id"})
"""Facts that name a run: they differ from run to run and tell nothing of a version."""

OF_THE_CODE: Final = frozenset({"git_commit", "git_dirty"})
"""Facts of the code that ran: they differ from version to version, and are no environment."""
