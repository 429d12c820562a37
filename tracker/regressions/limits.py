"""The limits that hold in a track: the defaults, where a user set no other.

Of two limits for one series the more specific one holds: a pattern of names goes before a kind, a kind before all
series; then a configuration before all, a device before all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import translate
from functools import cache
from re import Pattern, compile
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.detect import DEFAULTS, Key, KindCode, SeriesTraits, Thresholds, series_of
from tracker.store.thresholds import Threshold

F64 = NDArray[np.float64]

MIN_RATIO: Final = "min_ratio"
MIN_CONTRIBUTION: Final = "min_contribution"
OF_SERIES: Final = (MIN_RATIO, MIN_CONTRIBUTION)
"""Limits that a kind or a pattern of names may have of its own."""
COUNTS: Final = frozenset({"confirm", "least_base", "window", "look_back"})
"""Limits that are numbers of runs."""


def track_limits(rows: Sequence[Threshold]) -> Thresholds:
    """The limits of a track, of those that are the same for all of its series."""
    own = [row for row in sorted(rows, key=_specific) if row.name not in OF_SERIES]
    found = {row.name: int(row.value) if row.name in COUNTS else row.value for row in own}
    limits = replace(DEFAULTS, **found)
    return replace(limits, least_new=max(limits.least_new, limits.confirm))


def traits_of(keys: Sequence[Key], rows: Sequence[Threshold], *, device_timed: bool) -> SeriesTraits:
    """What the judge must know of the series of a track, with the limits that users set."""
    series = series_of(keys, device_timed=device_timed, limits=track_limits(rows))
    ratio, floor = np.expm1(series.ratio), series.floor.copy()
    for row in sorted((row for row in rows if row.name in OF_SERIES), key=_specific):
        mine = np.array([is_limit_of(row, key) for key in keys], dtype=bool)
        (ratio if row.name == MIN_RATIO else floor)[mine] = row.value
    is_part = np.isin(series.kind, (KindCode.STEP, KindCode.WHOLE))
    return replace(series, ratio=np.log1p(ratio), floor=np.where(is_part, series.floor, floor))


def limit_of(name: str, key: Key, rows: Sequence[Threshold]) -> Threshold | None:
    """The limit of this name that a user set and that holds for a series; None: the default holds."""
    found = [row for row in sorted(rows, key=_specific) if row.name == name and is_limit_of(row, key)]
    return found[-1] if found else None


def is_limit_of(row: Threshold, key: Key) -> bool:
    """Whether a limit is one of this series."""
    return row.kind in ("", key[0]) and (not row.pattern or like(row.pattern)(key[2]))


def limits_key(rows: Sequence[Threshold]) -> tuple[tuple[str | float, ...], ...]:
    """All of the limits that can change a verdict."""
    return tuple(
        (row.name, row.kind, row.pattern, row.value, bool(row.configuration_id), bool(row.device_id))
        for row in sorted(rows, key=_specific)
    )


def words_of_limits(rows: Sequence[Threshold]) -> str:
    """All of them in words; "" without any."""
    return "; ".join(words_of_limit(row) for row in sorted(rows, key=lambda row: (row.name, row.kind, row.pattern)))


def words_of_limit(limit: Threshold) -> str:
    """A limit that a user set, in words.

    >>> words_of_limit(Threshold("min_ratio", 0.1, "op", "aten::copy_*"))
    'min_ratio 10 % of op aten::copy_*'
    """
    of = " ".join(filter(None, (limit.kind, limit.pattern)))
    value = f"{limit.value:g}" if limit.name in COUNTS | {"alpha"} else f"{limit.value * 100:g} %"
    return f"{limit.name} {value}{f' of {of}' if of else ''}"


def _specific(row: Threshold) -> tuple[bool, int, bool, bool, bool, str]:
    """A sort key: what comes later goes before what comes earlier."""
    literal = sum(char not in "*?" for char in row.pattern)
    return bool(row.pattern), literal, bool(row.kind), bool(row.configuration_id), bool(row.device_id), row.pattern


@cache
def like(pattern: str) -> Callable[[str], bool]:
    """Whether a text is `pattern`, or matches it: names and shapes hold brackets, so only `*` and `?` are special.

    >>> like("aten::copy_*")("aten::copy_"), like("[[2,2]]")("[[2,2]]"), like("gemm?")("gemm")
    (True, True, False)
    """
    form: Pattern[str] = compile(translate(pattern.replace("[", "[[]")))
    return lambda text: text == pattern or form.match(text) is not None
