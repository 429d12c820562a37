"""Results on their way from compare to reports: what one run holds (`Shown`) and what two sides differ in (`Diff`).

Numbers are not rounded here. Columns end in their unit: `_ns` nanoseconds, `_bytes` bytes, `_share` a quotient; `calls`
is a count. A missing number is NA in a frame and None in a field, never 0. `diff` is candidate / baseline - 1, NA
without a baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from tracker.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

SECTIONS: Final = ("overall", "operator", "kernel", "communication", "memory", "module", "api")
"""The words of `--only`, in the order in which reports show the sections."""
MATCHES: Final = ("shape", "name")
GRAINS: Final = ("rank", "step")
"""The words of `--match` and of `--by`."""

BOTH: Final = "both"
ADDED: Final = "ADDED"
REMOVED: Final = "REMOVED"
"""Values of a `status` column: on both sides, only on the candidate's, only on the baseline's."""

OP_KEY: Final = ("name", "input_shapes", "input_types")
KERNEL_KEY: Final = ("name", "input_shapes", "category", "core_type", "op")
COMMUNICATION_KEY: Final = ("kind", "group_role", "group_size", "data_type", "size_class_bytes")
MODULE_KEY: Final = ("module", "phase")
API_KEY: Final = ("level", "name")


def check_sections(words: Iterable[str]) -> None:
    """UsageError for a word that is not in SECTIONS."""
    _check_words("section", words, SECTIONS)


def _check_words(what: str, words: Iterable[str], choices: Sequence[str]) -> None:
    for word in words:
        if word not in choices:
            raise UsageError(f"no {what} {word!r}", remedy=f"choose from {', '.join(choices)}")


def _sides(*names: str) -> tuple[str, ...]:
    return tuple(f"{side}_{name}" for name in names for side in ("baseline", "candidate"))


DIFF_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "environment": ("kind", "key", "baseline", "candidate"),
    "overall": (
        "metric", "title", "level", "unit", *_sides("value"), "delta", "diff", *_sides("share"),
    ),
    "ops": (
        *OP_KEY, "baseline_name", "status", *_sides("ns"), "delta_ns", "diff", *_sides("calls"),
        "calls_delta_ns", "per_call_delta_ns",
        *_sides("host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns", "total_calls"),
    ),
    "op_details": (*OP_KEY, "kernel", "category", *_sides("calls", "ns"), "delta_ns", "diff"),
    "kernels": (*KERNEL_KEY, "status", *_sides("calls", "ns", "average_ns", "min_ns", "max_ns"), "delta_ns", "diff"),
    "communication": (
        *COMMUNICATION_KEY, "status",
        *_sides("calls", "bytes", "ns", "average_ns", "max_ns", "min_ns", "exposed_ns", "wait_ns", "transit_ns"),
        "delta_ns", "diff",
    ),
    "communication_details": (
        *COMMUNICATION_KEY, "name", "plane", *_sides("calls", "ns", "average_ns", "max_ns", "min_ns"),
        "delta_ns", "diff",
    ),
    "memory": (*OP_KEY, "status", *_sides("bytes", "calls"), "delta_bytes", "diff"),
    "memory_details": (
        *OP_KEY, "component", *_sides("bytes", "calls", "held_ns", "unreleased_bytes"), "delta_bytes", "diff",
    ),
    "modules": (*MODULE_KEY, "status", *_sides("calls", "ns"), "delta_ns", "diff"),
    "api": (*API_KEY, "status", *_sides("calls", "ns", "self_ns", "average_ns"), "delta_ns", "diff"),
}  # fmt: skip
"""The columns of each frame of `Diff`, in order; `Diff` says what they mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which rows are looked at, and how paths on disk are read. None or empty lets everything through.

    `op`, `module`, `kind`, `group` (the role of a communication group): glob patterns, case matters. `minimum_ns` drops
    rows below it (in a diff: on both sides).
    `on_progress(label, done, total)`: bytes read of the file `label`.
    """

    workload: str | None = None
    module: str | None = None
    op: str | None = None
    kind: str | None = None
    group: str | None = None
    ranks: tuple[int, ...] = ()
    stage: int | None = None
    minimum_ns: int | None = None
    format: str | None = None
    flow_category: str | None = None
    allow_partial: bool = False
    max_bytes: int | None = None
    on_progress: Callable[[str, int, int], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffOptions(Selection):
    """How two sides are compared; the defaults are those of `tracker diff`.

    `match`: ops are the same by name and shapes, or by name alone. `max_kernels`: an op that launches more kernels per
    call is replaced by its children; None never. `op_map`: baseline name -> candidate name of equivalent ops.
    `only`: words of SECTIONS, empty for all. Raises UsageError for a word that is none of the choices.
    """

    match: Literal["shape", "name"] = "shape"
    max_kernels: int | None = None
    op_map: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_words("match", (self.match,), MATCHES)
        check_sections(self.only)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions(Selection):
    """What of a run is shown: `by` adds the grain columns `rank` and / or `step`; any other word is a UsageError."""

    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_words("grain", self.by, GRAINS)


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a diff: what the user named (`label`) and the runs behind it.

    `runs`, `ranks`, `steps` are counts; `device`: `vendor model`, `cpu` or `unknown`; `timeline`: `device` or `host`.
    """

    label: str
    run_ids: tuple[int, ...]
    workload: str
    version: str
    device: str
    configuration: str
    runs: int
    ranks: int
    steps: int
    timeline: str


@dataclass(frozen=True, slots=True)
class Part:
    """A share of the change of the total: compute, exposed communication, exposed copy, free, rest; mean ns per
    step."""

    name: str
    title: str
    baseline_ns: float | None
    candidate_ns: float | None
    delta_ns: float


@dataclass(frozen=True, slots=True)
class Cause:
    """One op (or all shapes of one op name) and what it adds to the change, in mean ns per step and rank.

    `delta_ns` = `calls_delta_ns` (more or fewer calls) + `per_call_delta_ns` (slower or faster calls); both None where
    one side lacks the op. `share`: delta_ns / the total's delta, None where that is 0. `where`: modules, ranks, hosts
    or code line, may be "". `stands_out`: every run of one side took longer than every run of the other; None with one
    run a side.
    """

    kind: str
    name: str
    input_shapes: str
    status: str
    delta_ns: float
    share: float | None
    calls_delta_ns: float | None
    per_call_delta_ns: float | None
    baseline_calls: float | None
    candidate_calls: float | None
    baseline_ns: float | None
    candidate_ns: float | None
    where: str = ""
    stands_out: bool | None = None


@dataclass(frozen=True, slots=True)
class Rename:
    """A removed and an added op of about equal time under the same parent: a rename or a fusion, not news."""

    removed: str
    added: str
    parent: str
    removed_ns: float
    added_ns: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why the total changed; it adds up: the `delta_ns` of `parts` sum to `delta_ns`, in mean ns per step and rank.

    `total_metric`: `step_ns` or `e2e_ns`. `causes`: the ops with the largest changes, at most 20, largest first.
    `explained_ns`: sum of the deltas of ALL ops, whatever the filters, not of `causes` alone; `rest_ns` = delta_ns -
    explained_ns. `gross_loss_ns` / `gross_gain_ns`: sums of the positive / negative op
    deltas; `cancelling`: they hide each other in the total. `rollup`: the same summed by op name, again at most 20.
    `other_causes_ns`: the
    deltas of the ops that `causes` leaves out. `baseline_range_ns`, `candidate_range_ns`: smallest and largest total of
    the runs of a side. `answer`: the one line that answers the question.
    """

    total_metric: str
    baseline_ns: float | None
    candidate_ns: float | None
    delta_ns: float | None
    parts: tuple[Part, ...]
    causes: tuple[Cause, ...]
    rest_ns: float | None
    explained_ns: float
    cancelling: bool
    gross_loss_ns: float
    gross_gain_ns: float
    rollup: tuple[Cause, ...]
    renames: tuple[Rename, ...]
    answer: str
    other_causes_ns: float = 0.0
    baseline_range_ns: tuple[float, float] | None = None
    candidate_range_ns: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Diff:
    """Candidate against baseline.

    Every number is the mean per step and rank, the median over the runs of the side (float64, NA = missing). Frames
    have exactly the columns of DIFF_COLUMNS, rows ordered by |delta| descending (`overall` and `environment` in reading
    order). `metric`: what `*_ns` of ops, modules and details is: `device_self_ns`, or `host_self_ns` where there is no
    device activity. `status`: `both`, `ADDED` or `REMOVED`.

    - environment: what differs, kind (device, configuration, fact, host, setting, ...), key, baseline, candidate (text)
    - overall: metric, title, level (0 main, 1, 2 below), unit (ns, bytes, count, ratio), values and delta in that unit,
      share of E2E. Metrics: step_ns, e2e_ns, compute_ns (below it a row per category), operator_ns (plain sum of
      compute kernels; below it operator_cube_ns, operator_vector_ns where the device tells), communication_ns,
      overlap_ns, exposed_communication_ns, copy_ns, exposed_copy_ns, free_ns, free_share, kernel_count,
      peak_allocated_bytes, ...
    - ops: baseline_name (NA unless mapped by `op_map`); `*_calls` per step, `*_total_calls` in all steps and ranks of
      the side; calls_delta_ns + per_call_delta_ns = delta_ns
    - op_details, communication_details, memory_details: what a row of ops, communication, memory consists of, under the
      same key
    - kernels: name is the canonical name; category `copy` and `memset` included
    - communication: bytes is the payload; exposed_ns not hidden by compute; wait_ns / transit_ns where they can be told
      apart
    - memory: bytes allocated while the op was innermost; held_ns until freed; unreleased_bytes never freed in the
      capture
    - options: how the sides were compared; notes: sentences about what makes the comparison doubtful
    - modules: `A_0/B_1`, phase (forward, backward, optimizer, ...); api: level (runtime, driver, ...), name
    """

    baseline: Side
    candidate: Side
    metric: str
    environment: pd.DataFrame
    overall: pd.DataFrame
    ops: pd.DataFrame
    op_details: pd.DataFrame
    kernels: pd.DataFrame
    communication: pd.DataFrame
    communication_details: pd.DataFrame
    memory: pd.DataFrame
    memory_details: pd.DataFrame
    modules: pd.DataFrame
    api: pd.DataFrame
    explanation: Explanation
    options: DiffOptions = field(default_factory=DiffOptions)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """One run, for `tracker show`: sums over its steps and ranks unless grain columns `stage`, `rank`, `step` stand
    first.

    `run`: the columns of `store.queries.runs` for this run (run_id, workload, version, device, ...). Times are int ns,
    sizes int bytes.

    - overall: one row per rank, the whole capture: rank, duration_ns, timeline (device or host) and the other fields of
      `Breakdown`; steps: the same per rank and step
    - ops: name, input_shapes, input_types, module, phase, calls, host_total_ns, host_self_ns, device_total_ns,
      device_self_ns, min_ns, max_ns, sum_squares_ns2, kernel_count, call_stack
    - kernels: name, canonical_name, type, core_type, input_shapes, category, op, op_input_shapes, calls, total_ns,
      min_ns, max_ns, sum_squares_ns2, wait_ns, bytes; copies: the same columns, the rows with category `copy` and
      `memset`
    - communication: kind, group_role, group_size, data_type, size_class_bytes, calls, bytes, total_ns, min_ns, max_ns,
      transit_ns, wait_ns, synchronization_ns, idle_ns, exposed_ns
    - memory: op, input_shapes, input_types, component, calls, bytes, held_ns, unreleased_bytes
    - modules: module, phase, calls, host_total_ns, host_self_ns, device_total_ns, device_self_ns
    - api: level, name, calls, total_ns, self_ns, min_ns, max_ns
    - memory_curve: rank, component, time_ns, allocated_bytes, reserved_bytes
    - facts: kind (fact, configuration, tag), key, value; sources: rank, format, path, bytes, digest
    """

    run: Mapping[str, Any]
    overall: pd.DataFrame
    steps: pd.DataFrame
    ops: pd.DataFrame
    kernels: pd.DataFrame
    copies: pd.DataFrame
    communication: pd.DataFrame
    memory: pd.DataFrame
    modules: pd.DataFrame
    api: pd.DataFrame
    memory_curve: pd.DataFrame
    facts: pd.DataFrame
    sources: pd.DataFrame
