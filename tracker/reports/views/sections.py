"""Sections of a diff or a run: which tables answer them, and why one has no rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tracker.reports.document import Table
from tracker.results import Selection

if TYPE_CHECKING:
    from tracker.columns import Columns

PRUNED: Final = "the details of the run were deleted (tracker prune)"
_REASONS: Final = {
    "overall": "no step markers in the capture",
    "operator": "the source states no operators",
    "kernel": "the source states none: no device at work, or a capture of the host alone",
    "kernel_type": "only Ascend's profiler names types of kernels, at Level1 and above",
    "metric": "only Ascend's profiler measures kernels, at Level1 and above and with aic_metrics; a diff needs them of "
    "both sides",
    "communication": "no collectives ran, or the source does not tell them apart",
    "link": "only Ascend's profiler says over which links collectives go, at Level1 and above",
    "memory": "the source states no allocations; PyTorch's profilers do with profile_memory=True",
    "memory_peak": "the source does not say at which addresses memory was allocated, or a run was ingested by an older "
    "tracker; a diff needs it of both sides",
    "memory_block": "the source states no allocations, or a run was ingested by an older tracker; a diff needs them of "
    "both sides",
    "module": "the source states no modules; PyTorch's profilers do with with_modules=True or with_stack=True",
    "api": "the source states no calls of the device's runtime; a diff needs them inside steps",
    "counter": "the profiler wrote no tables of its own; a diff needs them of both sides",
    "efficiency": "no matmul, convolution or attention with known shapes, or not asked for; it is of one run",
}
"""Section -> what its tables lack."""
_FILTERS: Final = ("module", "op", "kind", "group", "ranks", "stage", "minimum_ns", "steps", "baseline_steps",
                   "candidate_steps")  # fmt: skip


def names_modules(modules: Columns) -> bool:
    """Whether a row of the table of modules has a name: others hold what a phase does outside of modules."""
    return any(modules.listed("module"))


def in_section(found: list[Table], section: str, only: tuple[str, ...], chosen: Selection, pruned: bool) -> list[Table]:
    """The tables of a section that have rows; where a reader chose the section, all of them, with a note on why one has
    no rows: filters can be a reason too, and that the details of the run were deleted (`pruned`).
    """
    kept = []
    for one in found:
        if one.rows:
            kept.append(replace(one, section=section))
        elif section in only:
            is_filtered = any(getattr(chosen, name, None) not in (None, ()) for name in _FILTERS)
            filtered = ", or --step and the filters let nothing through" if is_filtered else ""
            why = PRUNED if pruned else f"{_REASONS[section]}{filtered}"
            kept.append(replace(one, section=section, note=f"no rows: {why}"))
    return kept
