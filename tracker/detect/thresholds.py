"""What counts as a change: every constant of the judgement in one struct, with the defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import translate
from functools import cache
from re import compile
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.results.thresholds import Threshold
from tracker.results.verdicts import LEAST_FOR_DRIFT
from tracker.schema.series import SeriesKey
from tracker.units import counted


class Thresholds(Struct, frozen=True):
    """Limits of the judgement. Ratios and shares are parts of one (0.03 = 3 %); runs are counts.

    `*_host`: where the operators of a run are timed on the host; `*_device`: on the device, whose clock is steadier.
    """

    window: int = 8
    """Runs of the current level that a version is compared with, the newest first."""
    look_back: int = 32
    """Runs before a version among which the runs of a level are looked for."""
    least_base: int = 3
    """Runs of a level without which there is no test."""
    least_new: int = 2
    """New runs that decide; one run of a version makes a suspect."""
    confirm: int = 2
    """Runs that confirm a suspect, where versions have one run each."""
    alpha: float = 0.05
    """False discovery rate."""
    ratio: float = 0.03
    """Smallest change of a series."""
    ratio_communication: float = 0.10
    ratio_step_host: float = 0.05
    ratio_step_device: float = 0.02
    """Smallest change of the step and of its parts."""
    floor: float = 0.001
    """Smallest contribution of a series to the change of the step, as a share of it."""
    floor_part_host: float = 0.02
    floor_part_device: float = 0.01
    """The same of idle time, data loading, exposed communication, phases and modules."""
    tested: float = 0.0001
    """Share of the step below which a series is not tested."""
    gradual_ratio: float = 0.08
    """Gradual slowdown against the first runs of a level."""
    alpha_suspect: float = 0.005
    """The same of suspects that are judged together: every version of one run is another look at a level."""
    alpha_named: float = 0.01
    """The same of one run, from which a suspect is named."""
    alpha_gradual: float = 0.005
    """The same of gradual slowdowns, which every version looks for."""
    least_gradual: int = 4
    """Newest runs that show a gradual slowdown."""
    late: float = 1e-4
    """Largest p, times the places of a split, of a change that only many runs show together: each version looks for
    one in each series.
    """
    gate_net: float = 0.01
    """Net slowdown of the operators of a version, as a share of the step, at which a gate fails; and share of new and
    removed operators in a change of the step that makes it no drift."""
    gate_peak: float = 0.10
    """Rise of peak memory at which a gate fails."""
    least_leaves: int = LEAST_FOR_DRIFT
    """Operators that every compared run needs for a common-mode shift, and series that a family needs to share its
    variance."""
    explained: float = 0.5
    """Part of a change of the step that changed operators and the first wait must make up where drift hides it."""
    unchanged_errors: float = 1.9
    """Standard errors that a change stays away from its limit to be called UNCHANGED."""

    def alpha_gradual_of(self, *, is_single: bool) -> float:
        """`alpha_gradual`, which is shared by as many looks at the newest runs as there are in versions of one run."""
        return self.alpha_gradual / self.least_gradual if is_single else self.alpha_gradual

    def late_of(self, *, is_single: bool, is_alone: bool) -> float:
        """`late`, of a version of one run; a hundredth of it of one of several, which has a test of its own that leaves
        less to find, and of series alone, beside which nothing shows what noise is.
        """
        return self.late if is_single and not is_alone else self.late / 100

    def runs_needed(self, base_runs: int, new_runs: int) -> str:
        """Say what a verdict lacks, in words; "" where both sides have enough runs.

        >>> DEFAULTS.runs_needed(2, 2)
        'a verdict needs 1 more run of the baseline'
        """
        lacks = {"baseline": self.least_base - base_runs, "candidate": self.least_new - new_runs}
        words = [f"{counted(count, 'more run')} of the {side}" for side, count in lacks.items() if count > 0]
        return f"a verdict needs {' and '.join(words)}" if words else ""


DEFAULTS = Thresholds()

MIN_RATIO: Final = "min_ratio"
MIN_CONTRIBUTION: Final = "min_contribution"
OF_SERIES: Final = (MIN_RATIO, MIN_CONTRIBUTION)
"""Limits that a kind or a pattern of names may have of its own."""
COUNTS: Final = frozenset({"confirm", "least_base", "window", "look_back"})
"""Limits that are numbers of runs."""


def track_limits(rows: Sequence[Threshold]) -> Thresholds:
    """Return the limits of a track, of those that are the same for all of its series."""
    own = [row for row in sorted(rows, key=specific) if row.name not in OF_SERIES]
    found = {row.name: int(row.value) if row.name in COUNTS else row.value for row in own}
    limits = replace(DEFAULTS, **found)
    return replace(limits, least_new=max(limits.least_new, limits.confirm))


def limit_of(name: str, key: SeriesKey, rows: Sequence[Threshold]) -> Threshold | None:
    """Return the limit of this name that a user set and that holds for a series; None: the default holds."""
    found = [row for row in sorted(rows, key=specific) if row.name == name and is_limit_of(row, key)]
    return found[-1] if found else None


def is_limit_of(row: Threshold, key: SeriesKey) -> bool:
    """Return whether a limit is one of this series."""
    return row.kind in ("", key[0]) and (not row.pattern or like(row.pattern)(key[2]))


def words_of_limits(rows: Sequence[Threshold]) -> str:
    """Return all of them in words; "" without any."""
    return "; ".join(words_of_limit(row) for row in sorted(rows, key=lambda row: (row.name, row.kind, row.pattern)))


def words_of_limit(limit: Threshold) -> str:
    """Return a limit that a user set, in words.

    >>> words_of_limit(Threshold("min_ratio", 0.1, "op", "aten::copy_*"))
    'min_ratio 10 % of op aten::copy_*'
    """
    of = " ".join(filter(None, (limit.kind, limit.pattern)))
    value = f"{limit.value:g}" if limit.name in COUNTS | {"alpha"} else f"{limit.value * 100:g} %"
    return f"{limit.name} {value}{f' of {of}' if of else ''}"


def specific(row: Threshold) -> tuple[bool, int, bool, bool, bool, str]:
    """Return a sort key: a more specific limit sorts later, and overrides those before it."""
    literal = sum(char not in "*?" for char in row.pattern)
    return bool(row.pattern), literal, bool(row.kind), bool(row.configuration_id), bool(row.device_id), row.pattern


@cache
def like(pattern: str) -> Callable[[str], bool]:
    """Return whether a text is `pattern`, or matches it: names and shapes hold brackets, so only `*` and `?` are
    special.

    >>> like("aten::copy_*")("aten::copy_"), like("[[2,2]]")("[[2,2]]"), like("gemm?")("gemm")
    (True, True, False)
    """
    form = compile(translate(pattern.replace("[", "[[]")))
    return lambda text: text == pattern or form.match(text) is not None
