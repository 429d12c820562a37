"""Whether a change of a series is one of the jumps between two levels that its older runs show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from tracker.detectors.within import Modes, is_between, jumps_between
from tracker.judgement.families import more_is_better, unit_of
from tracker.judgement.follow.watched import Watched, WatchedRun, watched_of
from tracker.judgement.judging import Values
from tracker.judgement.thresholds import Thresholds
from tracker.results.verdicts import JUMPS
from tracker.units import format_bytes, format_ns, size_unit, time_unit


def reason_of_jump(
    watched: Watched,
    row: int,
    accepted: Sequence[int],
    newer: Sequence[int],
    other: Sequence[int],
    *,
    device_timed: bool,
) -> str:
    """Why the change of a series between the columns `newer` and `other` is none; "" where it may be one."""
    family = watched.families[row]
    limits = watched.thresholds.limits(family, [watched.names[row]], device_timed=device_timed)
    own, slack = watched.centred[row], float(np.max(limits.effect))
    modes = jumps_between(own[list(accepted)], own[list(newer)], slack)
    if modes is None or not is_between(modes, own[list(other)], slack):
        return ""
    return f"{JUMPS}, {_levels(family[1], modes, bool(more_is_better([family])[0]))}"


def in_order(line: Values, columns: Sequence[int], thresholds: Thresholds) -> Watched:
    """These runs of `line`, in this order."""
    # centring knows the order of the runs alone, neither their versions nor when they ran
    runs = [WatchedRun(at, 0, 0, device_timed=False) for at in range(len(columns))]
    return watched_of(columns_of(line, columns), runs, thresholds)


def columns_of(line: Values, columns: Sequence[int]) -> Values:
    """These runs of `line`, in this order; the other numbers of it are those of all."""
    return replace(line, values=line.values[:, list(columns)], calls=line.calls[:, list(columns)])


def _levels(metric: str, modes: Modes, inverse: bool) -> str:
    """Both levels in words, in one unit."""
    low, high = (1.0 / modes.high, 1.0 / modes.low) if inverse else (modes.low, modes.high)
    unit = unit_of(metric)
    if unit == "ns":
        texts = [format_ns(level, time_unit(low, high)) for level in (low, high)]
    elif unit == "bytes":
        texts = [format_bytes(level, size_unit(low, high)) for level in (low, high)]
    else:
        texts = [f"{level:.4g}" for level in (low, high)]
    return " and ".join(texts)
