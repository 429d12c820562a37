"""The limits that hold in a line: the usual ones of the rule, where a user set no other.

Of two limits for one series the more specific one holds: a pattern of names goes before a kind, a kind before all
series; then a configuration before all, a device before all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import translate
from functools import cache
from re import Pattern, compile
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.detectors import rule
from tracker.judgement.families import RUN, Family
from tracker.store.thresholds import Threshold

F64 = NDArray[np.float64]

MIN_RATIO: Final = "min_ratio"
MIN_CONTRIBUTION: Final = "min_contribution"
ALPHA: Final = "alpha"
CREEP_RATIO: Final = "creep_ratio"
CONFIRM: Final = "confirm"

_USUAL: Final[Mapping[str, float]] = {"communication": rule.COMMUNICATION_RATIO}


class Thresholds(Struct, frozen=True):
    """The limits that users set in a line, in any order; without any, the usual ones hold."""

    rows: tuple[Threshold, ...] = ()

    @property
    def key(self) -> tuple[tuple[str | float, ...], ...]:
        """All that can change a verdict: for the fingerprint of what is judged by it."""
        return tuple(
            (row.name, row.kind, row.pattern, row.value, bool(row.configuration_id), bool(row.device_id))
            for row in sorted(self.rows, key=_specific)
        )

    @property
    def confirm(self) -> int:
        """How many runs after a suspicion decide."""
        found = self.of(CONFIRM)
        return rule.CONFIRMING if found is None else int(found.value)

    @property
    def deciding(self) -> int:
        """How many runs of a version decide by themselves."""
        return max(rule.FINDING_RUNS, self.confirm)

    def of(self, name: str, kind: str = "", series: str | None = None) -> Threshold | None:
        """What a user set for a series of `kind`, or without `series` for all of the kind; None: the usual holds."""
        rows = [row for row in self._rows(name, kind) if not row.pattern or _is_like(row.pattern, series)]
        return rows[-1] if rows else None

    def limits(self, family: Family, names: Sequence[str], *, device_timed: bool = True) -> rule.Limits:
        """What a change must be of each of these series of a family. `device_timed`: for run-level series."""
        return self._limits(family[0], names, usual_ratio(family[0], device_timed=device_timed))

    def limits_of_calls(self, family: Family, names: Sequence[str]) -> rule.Limits:
        """The same for their number of calls, which hardly varies, of collectives neither."""
        return self._limits(family[0], names, rule.MIN_RATIO)

    def creep(self, family: Family, names: Sequence[str]) -> tuple[rule.Limits, float | F64]:
        """What slow creep must be of each of these series, and the step that is a finding of its own.

        Where steps count only from a larger change on, so does creep, unless its own limit says otherwise.
        """
        limits = self.limits_of_calls(family, names)
        own: float | F64 = 0.0
        if self._rows(MIN_RATIO, family[0]):
            own = self._values(MIN_RATIO, family[0], names, 0.0)
        ratio = self._values(CREEP_RATIO, family[0], names, np.maximum(own, rule.CREEP_RATIO))
        return replace(limits, min_ratio=ratio), limits.min_ratio

    def with_ratio(self, ratio: float) -> Thresholds:
        """The same with `ratio` as smallest change of all series but those that have one of their own by name."""
        kept = [row for row in self.rows if row.name != MIN_RATIO or row.pattern]
        return Thresholds((*kept, Threshold(MIN_RATIO, ratio)))

    def _limits(self, kind: str, names: Sequence[str], usual: float) -> rule.Limits:
        alpha = self.of(ALPHA, kind)
        contribution = rule.PART_CONTRIBUTION if kind == RUN else rule.MIN_CONTRIBUTION
        return rule.Limits(
            self._values(MIN_RATIO, kind, names, usual),
            rule.ALPHA if alpha is None else alpha.value,
            self._values(MIN_CONTRIBUTION, kind, names, contribution),
        )

    def _rows(self, name: str, kind: str) -> list[Threshold]:
        """The limits of a name for a kind, the most specific one last."""
        return sorted((row for row in self.rows if row.name == name and row.kind in ("", kind)), key=_specific)

    def _values(self, name: str, kind: str, names: Sequence[str], usual: float | F64) -> float | F64:
        """One number for all, or one per series where names make a difference."""
        value = usual
        for row in self._rows(name, kind):
            if not row.pattern:
                value = row.value
                continue
            mine = np.array([_is_like(row.pattern, series) for series in names], dtype=bool)
            if mine.any():
                value = np.where(mine, row.value, value)
        return value

    def told(self) -> str:
        """All of them in words; "" without any."""
        return "; ".join(told(row) for row in sorted(self.rows, key=lambda row: (row.name, row.kind, row.pattern)))

    def of_change(self, kind: str, series: str, change: str, *, device_timed: bool) -> dict[str, Limit]:
        """By name, each limit that decides on one series, as it holds. `change`: see the table finding."""
        family: Family = (kind, "")
        limits = self.limits(family, [series], device_timed=device_timed)
        if change == "calls":
            limits = self.limits_of_calls(family, [series])
        if change == "creep":
            limits, _ = self.creep(family, [series])
        effect = MIN_RATIO if change != "creep" or self.of(CREEP_RATIO, kind, series) is None else CREEP_RATIO
        values = {
            effect: limits.min_ratio, ALPHA: limits.alpha, MIN_CONTRIBUTION: limits.min_contribution,
            CONFIRM: self.confirm,
        }  # fmt: skip
        found = {name: Limit(float(np.max(value)), self.of(name, kind, series)) for name, value in values.items()}
        if effect == CREEP_RATIO:
            found[MIN_RATIO] = found[CREEP_RATIO]
        return found


class Limit(Struct, frozen=True):
    """A limit as it holds, and where it is from; None: it is the usual one."""

    value: float
    origin: Threshold | None


NONE: Final = Thresholds()
"""The usual limits."""


def usual_ratio(kind: str, *, device_timed: bool) -> float:
    """The smallest change of a kind of series that counts, where no user set another.

    >>> usual_ratio("op", device_timed=True), usual_ratio("run", device_timed=False)
    (0.03, 0.05)
    """
    if kind == RUN:
        return rule.DEVICE_TIMED_STEP_RATIO if device_timed else rule.HOST_TIMED_STEP_RATIO
    return _USUAL.get(kind, rule.MIN_RATIO)


def told(limit: Threshold) -> str:
    """A limit that a user set, in words.

    >>> told(Threshold("min_ratio", 0.1, "op", "aten::copy_*"))
    'min_ratio 10 % of op aten::copy_*'
    """
    of = " ".join(filter(None, (limit.kind, limit.pattern)))
    value = f"{limit.value:g}" if limit.name in (ALPHA, CONFIRM) else f"{limit.value * 100:g} %"
    return f"{limit.name} {value}{f' of {of}' if of else ''}"


def _specific(row: Threshold) -> tuple[bool, int, bool, bool, bool, str]:
    """A sort key: what comes later goes before what comes earlier."""
    literal = sum(char not in "*?" for char in row.pattern)
    return bool(row.pattern), literal, bool(row.kind), bool(row.configuration_id), bool(row.device_id), row.pattern


def _is_like(pattern: str, series: str | None) -> bool:
    return series is not None and like(pattern)(series)


@cache
def like(pattern: str) -> Callable[[str], bool]:
    """Whether a text is `pattern`, or matches it: names and shapes hold brackets, so only `*` and `?` are special.

    >>> like("aten::copy_*")("aten::copy_"), like("[[2,2]]")("[[2,2]]"), like("gemm?")("gemm")
    (True, True, False)
    """
    form: Pattern[str] = compile(translate(pattern.replace("[", "[[]")))
    return lambda text: text == pattern or form.match(text) is not None
