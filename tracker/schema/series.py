"""The series of a run (the step, an operator, a collective, ...): every kind declared once.

A series is a number that is followed from run to run, and judged. Its kind says from which level it is made, which
number of the rows it follows, which columns are its key, and what it rests on. From this follow the samples of a run
(`store.samples`), the series of a row of a diff (`compare.verdicts`, `compare.gates`, `compare.tree_tables`), what
`tracker show` prints per step (`compare.per_step`), what two recordings must have in common (`results.recording`), and
how a series is judged (`detect.series`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct

from tracker.schema.breakdown import Breakdown
from tracker.units import format_bytes


class SeriesKey(NamedTuple):
    """What tells a series from the others of its workload, configuration and device.

    `kind`: the word of a SeriesKind. `metric`: the number that is followed; both are its family.
    `input_shapes`: of a throughput its unit, since images per second are no tokens per second.
    `part`: as `SeriesKind.part` says; of a whole run how it was measured, one of WAYS.
    `step_kind`: of which kind of steps it is, "" of all steps of a run.
    """

    kind: str
    metric: str
    name: str
    input_shapes: str = ""
    part: str = ""
    step_kind: str = ""


NO_SERIES: Final = SeriesKey("", "", "")
"""The key of a row that is no series of its own."""

# what a series rests on in a recording: another setting of the profiler disturbs some of it
SHAPES_IN_KEY: Final = "keys with input shapes"
HOST_TIME: Final = "times of the host"
NAMES: Final = "names of operators and kernels"
API_NAMES: Final = "host API calls"
MODULE_NAMES: Final = "modules"
ALLOCATIONS: Final = "allocations"
RATE: Final = "numbers of the whole run"
STEP_BOUNDS: Final = "when a step begins and ends"
WHY_IDLE: Final = "why the device idles, and what data loading is"

# the records of a capture that a series rests on, where some may be lost: the words of `profile.Incomplete.forbids`
LOST_DEVICE: Final = "work of the device"
LOST_HOST: Final = "times of the host"
LOST_OWNERS: Final = "operators of kernels"
LOST_PARTS: Final = "parts of a step"
LOST_STEPS: Final = "steps and their parts"
LOST_CALLS: Final = "calls of the runtime"
NO_DEVICE_DATA: Final = "compute, communication and idle time"

_ON_HOST: Final = frozenset({HOST_TIME})
_BETWEEN_BOUNDS: Final = frozenset({STEP_BOUNDS})
# the host leaves gaps between kernels: parts of a step that grow with them are times of the host, too
_GAPS_OF_STEP: Final = frozenset({HOST_TIME, STEP_BOUNDS})
_WHOLE_STEP: Final = frozenset({LOST_DEVICE, LOST_HOST, LOST_STEPS})
_PARTS_OF_STEP: Final = _WHOLE_STEP | {LOST_PARTS}
_PARTS_ON_DEVICE: Final = _PARTS_OF_STEP | {NO_DEVICE_DATA}

JudgedAs = Literal[
    "OPERATOR", "NAME", "KERNEL", "API", "COMMUNICATION", "MEMORY", "PEAK", "STEP", "WHOLE", "WAIT", "PART", "RATE"
]
"""What a series is to the judgement: the names of `detect.KindCode`."""


class Metric(Struct, frozen=True):
    """A number that series follow.

    `column`: the column of the level that holds it, where it is called otherwise.
    `if_missing`: the column that stands in for it where a source does not state it.
    `rests_on`: what must be recorded alike for two of these numbers to be comparable, beside what the key rests on.
    `records`: without which records of a capture it is not judged.
    `by_calls`: columns of the level with what it would be, had each call taken what is usual for the calls of its row.
    """

    name: str
    column: str = ""
    if_missing: str = ""
    rests_on: frozenset[str] = frozenset()
    records: frozenset[str] = frozenset()
    by_calls: tuple[str, ...] = ()


BY_CALLS: Final = ("self_by_quartile_ns", "self_by_median_ns")
"""What a host's own time would be, had each call taken the lower quartile, or the median, of the calls of its row."""
DEVICE_OWN_TIME: Final = Metric("device_self_ns", records=frozenset({LOST_DEVICE, LOST_HOST, LOST_OWNERS}))
HOST_OWN_TIME: Final = Metric("host_self_ns", rests_on=_ON_HOST, records=frozenset({LOST_HOST}), by_calls=BY_CALLS)
OWN_TIMES: Final = (DEVICE_OWN_TIME, HOST_OWN_TIME)
"""The times by which operators are judged: see `own_time_of`."""
KERNEL_TIME: Final = Metric("total_ns", records=frozenset({LOST_DEVICE}))
EXPOSED_TIME: Final = Metric("exposed_ns", rests_on=_ON_HOST, records=frozenset({LOST_DEVICE}))
API_TIME: Final = Metric(
    "self_ns", if_missing="total_ns", rests_on=_ON_HOST, records=frozenset({LOST_HOST, LOST_CALLS})
)
ALLOCATED: Final = Metric("bytes", records=frozenset({LOST_HOST}))
ALLOCATED_BY_ALLOCATOR: Final = Metric("allocator_bytes", column="bytes", records=frozenset({LOST_HOST}))
"""Of runs of before memory was counted to the op that a user would name."""


def own_time_of(timeline: str) -> str:
    """Return the metric that judges operators: their device self time, or host self time without device activity.

    >>> own_time_of("device"), own_time_of("host")
    ('device_self_ns', 'host_self_ns')
    """
    return DEVICE_OWN_TIME.name if timeline == "device" else HOST_OWN_TIME.name


def part_of_collective(role: str, size_class_bytes: float | None) -> str:
    """Return the part of a collective: the role of its group and its size class. The size of the group is in neither.

    >>> part_of_collective("data parallel", 1024.0), part_of_collective("", None), part_of_collective("world", -1)
    ('data parallel, 1.00 KiB', '', 'world')
    """
    is_known = size_class_bytes is not None and size_class_bytes > 0
    if not is_known:
        return role
    size = format_bytes(size_class_bytes)
    return f"{role}, {size}" if role else size


class SeriesKind(Struct, frozen=True):
    """A kind of series, and how a row says of which one it is.

    `word`: the kind in keys, tables and options.
    `level`: whose rows it is made from; "" for the numbers of a whole run (RUN_SERIES).
    `metrics`: the numbers of it that are followed; a diff shows the first one, or the one by the timeline (OWN_TIMES).
    `name`, `shapes`, `part`: the columns that make these of a key, "" or () for none.
    `texts`: the table of keys that holds these columns, where the rows of the level hold their numbers only.
    `skips_empty_name`: a row without a name is of no series.
    `other_category`: rows of this category are series of another kind.
    `is_called`: its calls are those of one thing, so that its time changes by their number and by the time of each.
    `judged_as`: what it is to the judgement, unless each of its series says it.
    `rests_on`: what must be recorded alike for two of its keys to be comparable.
    `diff_table`: the table of a Diff of which a row is a series of this kind.
    `diff_name`: the column of the name in that table, where it is called otherwise.
    """

    word: str
    level: str
    metrics: tuple[Metric, ...] = ()
    name: str = "name"
    shapes: str = ""
    part: tuple[str, ...] = ()
    texts: str = ""
    skips_empty_name: bool = False
    other_category: str = ""
    is_called: bool = False
    judged_as: JudgedAs = "PART"
    rests_on: frozenset[str] = frozenset()
    diff_table: str = ""
    diff_name: str = ""

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of its level that make the key, the name first."""
        shapes = (self.shapes,) if self.shapes else ()
        return (self.name, *shapes, *self.part)

    @property
    def diff_columns(self) -> tuple[str, ...]:
        """The columns of its table of a Diff that make the key, in the order of `key_columns`."""
        return (self.diff_name or self.name, *self.key_columns[1:])

    def make_key(self, metric: str, values: Sequence[Any]) -> SeriesKey:
        """Return the key of the series that has these values in its `key_columns`; NO_SERIES where it is of none.

        >>> KIND["communication"].make_key("total_ns", ["all_reduce", "world", 1024])[2:5]
        ('all_reduce', '', 'world, 1.00 KiB')
        >>> KIND["module"].make_key("device_self_ns", ["", "forward"]) == NO_SERIES
        True
        """
        name = values[0]
        if self.skips_empty_name and not name:
            return NO_SERIES
        shapes = part = ""
        if self.shapes:
            # missing in a row of which no shapes were recorded
            shapes = values[1] or ""
        if self.part:
            part = part_of_collective(*values[-2:]) if self.part == _PART_OF_COLLECTIVE else values[-1]
        return SeriesKey(self.word, metric, name, shapes, part)


_PART_OF_COLLECTIVE: Final = ("group_role", "size_class_bytes")

KINDS: Final[tuple[SeriesKind, ...]] = (
    # per kind: what is followed; what makes its key; what two of its keys rest on, and what it is; where a diff has it
    SeriesKind("run", "", rests_on=frozenset({RATE})),
    SeriesKind(
        "op_name", "op", OWN_TIMES,
        texts="op_key",
        rests_on=frozenset({NAMES}), judged_as="NAME", is_called=True,
    ),
    SeriesKind(
        "op", "op", OWN_TIMES,
        texts="op_key", shapes="input_shapes",
        rests_on=frozenset({NAMES, SHAPES_IN_KEY}), judged_as="OPERATOR", is_called=True,
        diff_table="ops",
    ),
    SeriesKind(
        "kernel", "kernel", (KERNEL_TIME,),
        texts="kernel_key", name="canonical_name", shapes="input_shapes", other_category="communication",
        rests_on=frozenset({NAMES}), judged_as="KERNEL", is_called=True,
        diff_table="kernels", diff_name="name",
    ),
    SeriesKind(
        "communication", "communication", (KERNEL_TIME, EXPOSED_TIME),
        name="kind", part=_PART_OF_COLLECTIVE,
        rests_on=frozenset({NAMES}), judged_as="COMMUNICATION", is_called=True,
        diff_table="communication",
    ),
    SeriesKind(
        "memory", "memory", (ALLOCATED, ALLOCATED_BY_ALLOCATOR),
        texts="op_key", shapes="input_shapes",
        rests_on=frozenset({NAMES, SHAPES_IN_KEY, ALLOCATIONS}), judged_as="MEMORY",
        diff_table="memory",
    ),
    SeriesKind(
        "module", "op", OWN_TIMES,
        texts="op_key", name="module", part=("phase",), skips_empty_name=True,
        rests_on=frozenset({NAMES, MODULE_NAMES}), judged_as="PART",
        diff_table="modules",
    ),
    SeriesKind(
        "phase", "op", OWN_TIMES,
        texts="op_key", name="phase", skips_empty_name=True,
        rests_on=frozenset({NAMES}), judged_as="PART",
    ),
    SeriesKind(
        "api", "api", (API_TIME,),
        part=("level",),
        rests_on=frozenset({API_NAMES}), judged_as="API", is_called=True,
        diff_table="api",
    ),
)  # fmt: skip
"""In the order in which a reader sees findings of them."""

KIND: Final[Mapping[str, SeriesKind]] = {kind.word: kind for kind in KINDS}
"""Word -> kind."""
KIND_OF_TABLE: Final[Mapping[str, SeriesKind]] = {kind.diff_table: kind for kind in KINDS if kind.diff_table}
"""Table of a Diff -> the kind of series that its rows are. Where operators are matched by name they are `op_name`."""
SERIES_KINDS: Final = tuple(sorted(KIND, key=lambda word: word == "memory"))
"""The words of all kinds, in the order in which a name is looked for among them: times before sizes."""

RUN: Final = "run"
IDLE_SERIES: Final = "idle: "
"""What the names of series of idle time by cause begin with; see `IDLE_CAUSE`."""


class RunSeries(Struct, frozen=True):
    """A series of a whole run. `diff_name`: the number of a diff that it is, where that is not called as its metric."""

    name: str
    metric: Metric
    judged_as: JudgedAs
    diff_name: str = ""

    @property
    def number(self) -> str:
        """The number of a diff, and of the newest version of a track, that it is."""
        return self.diff_name or self.metric.name


RUN_SERIES: Final = (
    RunSeries("step", Metric("duration_ns", rests_on=_GAPS_OF_STEP, records=_WHOLE_STEP), "STEP", diff_name="step_ns"),
    # the step is a median; in the mean over all steps those show that are slow. An impossible record that moves the
    # end of a window moves the mean, and hardly the median.
    RunSeries("mean step", Metric("mean_step_ns", rests_on=_GAPS_OF_STEP, records=_PARTS_OF_STEP), "PART"),
    RunSeries("e2e", Metric("e2e_ns", rests_on=_ON_HOST, records=_WHOLE_STEP), "WHOLE"),
    RunSeries("compute", Metric("compute_ns", rests_on=_BETWEEN_BOUNDS, records=_PARTS_ON_DEVICE), "WHOLE"),
    RunSeries(
        "exposed communication",
        Metric("exposed_communication_ns", rests_on=_GAPS_OF_STEP, records=_PARTS_ON_DEVICE),
        "WAIT",
    ),
    RunSeries("exposed copy", Metric("exposed_copy_ns", rests_on=_GAPS_OF_STEP, records=_PARTS_ON_DEVICE), "WAIT"),
    RunSeries("idle time", Metric("idle_ns", rests_on=_GAPS_OF_STEP, records=_PARTS_ON_DEVICE), "WAIT"),
    RunSeries(
        "data loading",
        Metric("data_loading_ns", rests_on=_GAPS_OF_STEP | {WHY_IDLE}, records=_PARTS_OF_STEP),
        "WAIT",
    ),
    RunSeries("peak memory", Metric("peak_allocated_bytes", records=frozenset({LOST_HOST})), "PEAK"),
    RunSeries("throughput", Metric("samples_per_second", rests_on=_ON_HOST), "RATE"),
    # how uneven the ranks of a run are: 1 where they are equal
    RunSeries("imbalance", Metric("imbalance_ratio", records=_PARTS_OF_STEP), "RATE"),
    RunSeries("rank spread", Metric("rank_spread_ratio", records=_PARTS_OF_STEP), "RATE"),
)
"""The series of whole runs, but for those of idle time by cause: these have one name per cause."""

IDLE_CAUSE: Final = Metric("idle_cause_ns", column="ns", rests_on=_GAPS_OF_STEP | {WHY_IDLE}, records=_PARTS_ON_DEVICE)
"""The metric of the series that say why the device idles, all places of a cause together."""

_PARTS_OF_IDLE_TIME: Final = (
    Metric("data_loading_idle_ns", rests_on=_GAPS_OF_STEP | {WHY_IDLE}, records=_PARTS_ON_DEVICE),
    Metric("host_idle_ns", rests_on=_GAPS_OF_STEP | {WHY_IDLE}, records=_PARTS_ON_DEVICE),
)
"""Numbers of a diff that no series follows, but that rest on what idle time rests on."""

RUN_SERIES_OF: Final[Mapping[str, RunSeries]] = {series.name: series for series in RUN_SERIES}
"""Name -> series of a whole run."""
OF_WHOLE_CAPTURE: Final = frozenset({"peak memory", "throughput"})
"""Names of series that the whole capture may know where its steps do not. Kinds of steps have none of their own."""
RUN_LEVEL: Final[Mapping[str, str]] = {
    series.name: series.metric.name for series in RUN_SERIES if series.metric.name in Breakdown.__struct_fields__
}
"""Name of a series of a whole run -> the field of a breakdown that it follows; without those made from several."""

UNPROFILED_STEP: Final = "unprofiled_step_ns"
"""Number of a diff: the step of a run that has a trace as well, by the log of a timer beside it, without a profiler."""

RUN_SERIES_OF_NUMBER: Final[Mapping[str, RunSeries]] = {
    **{series.number: series for series in RUN_SERIES},
    UNPROFILED_STEP: RUN_SERIES_OF["step"],
}
"""Number of a diff -> the series of a whole run that it is."""


def metric_of_number(number: str) -> str:
    """Return the metric of a number of a whole run in a diff: of the series that it is, else as it is called.

    >>> metric_of_number("step_ns"), metric_of_number("kernel_count")
    ('duration_ns', 'kernel_count')
    """
    series = RUN_SERIES_OF_NUMBER.get(number)
    return number if series is None else series.metric.name


def key_of_run(name: str, *, unit: str = "", way: str = "") -> SeriesKey:
    """Return the key of a series of RUN_SERIES. `unit`: of a throughput; `way`: one of WAYS.

    >>> key_of_run("step")
    SeriesKey(kind='run', metric='duration_ns', name='step', input_shapes='', part='', step_kind='')
    """
    return SeriesKey(RUN, RUN_SERIES_OF[name].metric.name, name, unit, way)


STEP_KEY: Final = key_of_run("step")
STEP_SERIES: Final = ("step", "e2e")
"""Names of the series of a whole run that are the step: the first that is there counts, that of the whole capture
where no step is marked."""

SUMMARY: Final = "summary"
UNPROFILED: Final = "unprofiled"
WAYS: Final = ("", SUMMARY, UNPROFILED)
"""How the numbers of a whole run were measured: by a trace, in a profiler's summary, or without a profiler; the best
source first, which is that of the alphabet, too. A profiler costs time, and its summary counts otherwise than its
trace: these are series of their own. The first that is there stands for the step that operators are a part of.
"""

PROFILER_OF_WAY: Final[Mapping[str, str]] = {"": "on", SUMMARY: "summary", UNPROFILED: "off"}
"""Way -> the word of PROFILERS for it."""

STEP_WAYS: Final = (UNPROFILED, "", SUMMARY)
"""In which of WAYS the step of a run counts, the best first: without a profiler it is what the user pays."""


def ways_of_number(number: str) -> tuple[str, ...]:
    """Return which of WAYS a number of a diff can be measured in, the best first.

    >>> ways_of_number(UNPROFILED_STEP)
    ('unprofiled',)
    """
    return (UNPROFILED,) if number == UNPROFILED_STEP else WAYS


def way_of(profiler: str) -> str:
    """Return how the numbers of a whole run were measured, by the setting `profiler` of its captures.

    >>> way_of("off"), way_of("")
    ('unprofiled', '')
    """
    return {"off": UNPROFILED, "summary": SUMMARY}.get(profiler, "")


_METRICS: Final[Mapping[tuple[str, str], Metric]] = {
    **{(kind.word, metric.name): metric for kind in KINDS for metric in kind.metrics},
    **{(RUN, metric.name): metric for metric in (*(series.metric for series in RUN_SERIES), IDLE_CAUSE)},
    **{(RUN, metric.name): metric for metric in _PARTS_OF_IDLE_TIME},
}
_OTHER_PART_OF_RUN: Final = Metric("", records=_PARTS_ON_DEVICE)


def find_metric(kind: str, metric: str) -> Metric:
    """Return the metric of this name.

    A diff has numbers of a step that no series follows; an older database may have series that are followed no longer.
    Those of a whole run are parts of the step, others like the first metric of their kind.
    """
    declared = _METRICS.get((kind, metric))
    if declared is not None:
        return declared
    if kind == RUN:
        return _OTHER_PART_OF_RUN
    return KIND[kind].metrics[0] if kind in KIND else Metric(metric)
