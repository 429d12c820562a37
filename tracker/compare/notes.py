"""What makes a comparison doubtful, in sentences for the reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pandas as pd

from tracker.compare import means
from tracker.compare.sides import FILES

if TYPE_CHECKING:
    from tracker.compare.operators import Operators
    from tracker.compare.sides import Loaded
    from tracker.results import DiffOptions

_COMMON_SHARE: Final = 0.5


def notes(baseline: Loaded, candidate: Loaded, operators: Operators, options: DiffOptions) -> tuple[str, ...]:
    """Sentences: runs of a side that are no repeats, mixed hardware, other workloads, idle entries of the op map."""
    found = []
    rows = (operators.baseline_rows, operators.candidate_rows)
    for side, frame in zip((baseline, candidate), rows, strict=True):
        label = side.side.label
        for column, words in (("device", "devices"), ("configuration", "configurations")):
            values = side.runs[column].dropna().unique()
            if len(values) > 1:
                found.append(f"{label} mixes {words} ({', '.join(map(str, values))}): its median means little.")
        if _common_share(side, frame) < _COMMON_SHARE:
            found.append(
                f"The runs of {label} have few operators in common: are they repeats of one job? Name one run:ID."
            )
    if not {baseline.side.workload, candidate.side.workload} & {FILES} and (
        baseline.side.workload != candidate.side.workload
    ):
        found.append(f"Two workloads are compared: {baseline.side.workload} and {candidate.side.workload}.")
    return (*found, *_idle_entries(baseline, candidate, operators, options))


def _common_share(side: Loaded, frame: pd.DataFrame) -> float:
    """Share of the own time of a side's ops (by name) that lies in ops which all of its runs have."""
    if side.side.runs < 2:
        return 1.0
    times = means.per_run(side, frame, ["name"], ["own_ns"])["own_ns"].fillna(0.0)
    in_all = times.groupby(level="name").transform("size") == side.side.runs
    total = float(times.sum())
    return float(times[in_all].sum()) / total if total else 1.0


def _idle_entries(baseline: Loaded, candidate: Loaded, operators: Operators, options: DiffOptions) -> list[str]:
    known = {
        "baseline": set(operators.baseline_rows["baseline_name"]),
        "candidate": set(operators.candidate_rows["name"]),
    }
    lacking = [(old, "baseline", baseline) for old in options.op_map if old not in known["baseline"]]
    lacking += [(new, "candidate", candidate) for new in options.op_map.values() if new not in known["candidate"]]
    return [f"The op map names {name!r}, which {side.side.label} does not have." for name, _, side in lacking]
