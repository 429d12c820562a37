"""What the judge must know of a series: its family, what it is to the step, and its limits."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import F64, I64, Flags, Texts, objects
from tracker.detect.thresholds import DEFAULTS, MIN_RATIO, OF_SERIES, Thresholds, is_limit_of, specific, track_limits
from tracker.profile import NO_OP, NOT_LISTED, UNLINKED_OP
from tracker.results.thresholds import Threshold
from tracker.schema.series import KINDS, RUN, RUN_SERIES, STEP_WAYS, SeriesKey

NO_OPERATORS: Final = frozenset({NO_OP, UNLINKED_OP, NOT_LISTED})
"""Names of rows that stand for device work without an operator."""


class KindCode(IntEnum):
    """What a series is to the judgement; the order of the waits is the order in which one explains the step."""

    OPERATOR = 0
    """A leaf: operator and shapes, or a kernel where there are no operators."""
    NAME = 1
    """Operators summed by name."""
    KERNEL = 2
    API = 3
    COMMUNICATION = 4
    MEMORY = 5
    """Bytes that an operator allocates."""
    PEAK = 6
    """Peak memory of the run."""
    STEP = 7
    WHOLE = 8
    """End-to-end time and compute: the step in other words."""
    WAIT = 9
    """Data loading, idle time, exposed communication and copies."""
    PART = 10
    """Phases and modules."""
    RATE = 11
    """Throughput, and how uneven the ranks are."""


_CODE_OF_KIND: Final = {kind.word: KindCode[kind.judged_as] for kind in KINDS if kind.word != RUN}
_CODE_OF_RUN_SERIES: Final = {series.name: KindCode[series.judged_as] for series in RUN_SERIES}


class SeriesTraits(Struct, frozen=True):
    """Arrays with one element per series of a track.

    `family`: code of those that are tested together; `kind`: of `KindCode`; `part`, `step_kind`: of their keys;
    `is_time`: whether
    it is a time within the step, so that its contribution is a share of it; `more_is_better`; `ratio`: smallest change,
    as a log; `floor`: smallest contribution.
    """

    family: I64
    kind: I64
    part: Texts
    step_kind: Texts
    is_time: Flags
    more_is_better: Flags
    ratio: F64
    floor: F64

    @property
    def leaf(self) -> Flags:
        """Operators, whose times add up to the compute of the step."""
        return np.asarray(self.kind == KindCode.OPERATOR)

    @property
    def is_alone(self) -> bool:
        """Whether there are no operators, or one alone, beside which a number of the step can be seen."""
        return int(self.leaf.sum()) <= 1

    @property
    def of_step(self) -> Flags:
        """The step and its parts: one family, tested by themselves."""
        return np.asarray(self.kind >= KindCode.STEP)

    @property
    def steps(self) -> list[int]:
        """The series that can stand for the step: its own, then end to end and compute, without a profiler before those
        of a trace and of a summary.
        """
        rows: list[int] = np.flatnonzero(np.isin(self.kind, (KindCode.STEP, KindCode.WHOLE))).tolist()
        return sorted(rows, key=lambda row: (self.kind[row] != KindCode.STEP, STEP_WAYS.index(self.part[row])))

    @property
    def steps_of_operators(self) -> list[int]:
        """The same in the order in which operators are parts of them: of a trace before all others."""
        return sorted(self.steps, key=lambda row: (self.kind[row] != KindCode.STEP, self.part[row]))

    def choose_step(self, new_runs: F64 | I64, base_runs: F64 | I64) -> int | None:
        """Return the series that stands for the step of a version: of those that its runs have, the first that the runs
        before it have, too. new_runs, base_runs: of each series, how many runs.
        """
        rows = [row for row in self.steps if new_runs[row] > 0]
        alike = [row for row in rows if self.kind[row] == self.kind[rows[0]]]
        return next((row for row in alike if base_runs[row] > 0), rows[0] if rows else None)

    @property
    def shares_shift(self) -> Flags:
        """Times that the machine moves together, from which the common-mode shift is taken."""
        return np.asarray(self.is_time & ~self.of_step)

    def take(self, rows: Any) -> SeriesTraits:
        """Return some of the series: an index or a mask."""
        return SeriesTraits(*(getattr(self, name)[rows] for name in self.__struct_fields__))


def series_of(keys: Sequence[SeriesKey], *, device_timed: bool, limits: Thresholds = DEFAULTS) -> SeriesTraits:
    """Describe the series of a track by their keys, with the default limits of their kinds.

    Leaves are operators, timed on the device where any is, else kernels; what was launched outside any operator is
    no operator. Peak memory is a family of its own; the step and all of its parts are one.

    >>> keys = [SeriesKey("op", "host_self_ns", "mm"), SeriesKey("run", "duration_ns", "step")]
    >>> traits = series_of(keys, device_timed=False)
    >>> traits.leaf.tolist(), traits.floor.tolist()
    ([True, False], [0.001, 0.0])
    """
    leaf_family = _find_leaf_family(keys)
    codes, families = [], []
    for kind, metric, name, *_ in keys:
        # idle time by cause has a series per cause, which are not declared one by one
        code = _CODE_OF_RUN_SERIES.get(name, KindCode.WAIT) if kind == RUN else _CODE_OF_KIND[kind]
        if (kind, metric) == leaf_family:
            code = KindCode.OPERATOR
        elif code == KindCode.OPERATOR:
            # operators beside the leaves are no more to the step than kernels
            code = KindCode.KERNEL
        codes.append(code)
        if code >= KindCode.STEP:
            families.append("step")
        elif code == KindCode.PEAK:
            families.append("peak")
        else:
            families.append(f"{kind} {metric}")
    kinds = np.array(codes, dtype=np.int64)
    family = {name: code for code, name in enumerate(sorted(set(families)))}
    ratio = np.full(len(keys), limits.ratio)
    ratio[kinds == KindCode.COMMUNICATION] = limits.ratio_communication
    ratio[kinds >= KindCode.STEP] = limits.ratio_step_device if device_timed else limits.ratio_step_host
    floor = np.full(len(keys), limits.floor)
    floor[kinds >= KindCode.STEP] = 0.0
    floor[np.isin(kinds, (KindCode.WAIT, KindCode.PART))] = (
        limits.floor_part_device if device_timed else limits.floor_part_host
    )
    return SeriesTraits(
        np.array([family[name] for name in families], dtype=np.int64), kinds, objects([key[4] for key in keys]),
        objects([key[5] for key in keys]),
        is_time=np.array([metric.endswith("_ns") for _, metric, *_ in keys], dtype=bool),
        more_is_better=np.array([metric.endswith("_per_second") for _, metric, *_ in keys], dtype=bool),
        ratio=np.log1p(ratio), floor=floor,
    )  # fmt: skip


def _find_leaf_family(keys: Sequence[SeriesKey]) -> tuple[str, str] | None:
    """Return kind and metric of the series whose times add up to the compute of the step; None where there are none."""

    def order(family: tuple[str, str]) -> tuple[bool, bool, str]:
        kind, metric = family
        return kind != "op", "device" not in metric, metric

    families = {(key[0], key[1]) for key in keys if key[0] in ("op", "kernel") and key[2] not in NO_OPERATORS}
    if not families:
        # a placeholder that stands for all kernels would be the one operator, and its change that of the machine:
        # it is the leaf only where there is nothing else
        families = {(key[0], key[1]) for key in keys if key[0] == "op"}
    return min(families, key=order, default=None)


def traits_of(keys: Sequence[SeriesKey], rows: Sequence[Threshold], *, device_timed: bool) -> SeriesTraits:
    """Return what the judge must know of the series of a track, with the limits that users set."""
    series = series_of(keys, device_timed=device_timed, limits=track_limits(rows))
    ratio, floor = np.expm1(series.ratio), series.floor.copy()
    for row in sorted((row for row in rows if row.name in OF_SERIES), key=specific):
        mine = np.array([is_limit_of(row, key) for key in keys], dtype=bool)
        (ratio if row.name == MIN_RATIO else floor)[mine] = row.value
    is_part = np.isin(series.kind, (KindCode.STEP, KindCode.WHOLE))
    return replace(series, ratio=np.log1p(ratio), floor=np.where(is_part, series.floor, floor))
