"""What one run of each side is enough for: operators that came or went, other calls, another peak of memory.

Two runs of one program agree in these to the byte, whatever the machine does; how long they take is another matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.compare import match
from tracker.compare.renames import status_of_names
from tracker.profile import NO_OP, NOT_LISTED, UNLINKED_OP
from tracker.regressions.causes import MOVED
from tracker.results import ADDED, BOTH, REMOVED
from tracker.table import number_distinct_rows
from tracker.units import counted, format_bytes, format_diff, size_unit

if TYPE_CHECKING:
    from tracker.columns import Columns

_LEAST_OF_PEAK: Final = 0.01
"""Part of the peak below which a change of it is no fact: allocators of devices round."""
_STAND_INS: Final = (UNLINKED_OP, NO_OP, NOT_LISTED)


class Facts(Struct, frozen=True):
    """`added`, `removed`: names of operators of one side only; `reshaped`: names that have other shapes on each side;
    `called`: names of both sides with more or fewer calls; `peak`: bytes before and after, where they differ.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    reshaped: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    peak: tuple[float, float] | None = None

    @property
    def is_other_work(self) -> bool:
        """Whether the sides do not run the same operators."""
        return bool(self.added or self.removed or self.reshaped)

    def words(self, *, with_calls: bool) -> str:
        """Return all of it in a phrase, "" for nothing.

        >>> Facts(added=("pow", "tanh"), removed=("gelu",), called=("mul",)).words(with_calls=True)
        '2 operators new, 1 gone, 1 called more or less often'
        >>> Facts(removed=("gelu",), peak=(100.0, 150.0)).words(with_calls=False)
        '1 operator gone, peak memory 100 -> 150 B (+50.0 %)'
        """
        found: list[str] = []
        groups = [("new", self.added), ("gone", self.removed), ("with other shapes", self.reshaped)]
        groups += [("called more or less often", self.called)] if with_calls else []
        for word, names in groups:
            if names:
                count = f"{len(names):,}" if found else counted(len(names), "operator")
                found.append(f"{count} {word}")
        if self.peak is not None:
            before, after = self.peak
            unit = size_unit(before, after)
            number = format_bytes(before, unit).split(" ")[0]
            found.append(f"peak memory {number} -> {format_bytes(after, unit)} ({format_diff(after / before - 1.0)})")
        return ", ".join(found)


def facts_of(ops: Columns, overall: Columns) -> Facts:
    """Return what differs for certain between two sides.

    `ops`: all operators of their Diff; `overall`: its overall rows.
    """
    place, first = number_distinct_rows([ops["name"]])
    names = ops["name"][first].tolist()
    calls = [
        np.nan_to_num(match.sum_exactly(ops[f"{side}_calls"], place, len(first))).tolist()
        for side in ("baseline", "candidate")
    ]
    statuses = status_of_names(ops)
    one_sided = {name for name, status in ops.rows("name", "status") if status in (ADDED, REMOVED)}
    found: dict[str, list[str]] = {"added": [], "removed": [], "reshaped": [], "called": []}
    for name, before, after in zip(names, *calls, strict=True):
        if name in _STAND_INS:
            continue
        status = statuses[name]
        if status == ADDED:
            found["added"].append(name)
        elif status == REMOVED:
            found["removed"].append(name)
        elif name in one_sided:
            found["reshaped"].append(name)
        elif status == BOTH and before and after and abs(after - before) > MOVED * max(before, after):
            found["called"].append(name)
    return Facts(**{kind: tuple(own) for kind, own in found.items()}, peak=_peak(overall))


def _peak(overall: Columns) -> tuple[float, float] | None:
    for metric, before, after in overall.rows("metric", "baseline_value", "candidate_value"):
        if metric == "peak_allocated_bytes" and before and after and abs(after / before - 1.0) >= _LEAST_OF_PEAK:
            return float(before), float(after)
    return None
