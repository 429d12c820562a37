"""What rules look at: the numbers of one run per step, with the pieces of work of the slowest rank of each stage.

Ranks of a stage do the same work, so the pieces of one of them stand for all; times of steps, communication and memory
are of all ranks. Where the program marks ranges and no steps, the step is the range in which the device works longest.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.advice.code_places import CodePlaces
from tracker.advice.collectives import RankWaits, StepCollectives, UsualCollectives, longest_waited_for
from tracker.advice.devices import Peaks, device_of
from tracker.advice.idle import StepIdle
from tracker.advice.medians import reduce_rows, steps_of_ranks
from tracker.advice.pieces import WorkPiece, piece_of_kernel, piece_of_op
from tracker.advice.platform import Platform
from tracker.advice.roofline import WITH_FLOPS, MeasuredWork, Roofline
from tracker.advice.rows import (
    UNKNOWN,
    CaptureRow,
    CollectiveRow,
    GroupRow,
    KernelRow,
    LinkRow,
    OpRow,
    RunRow,
    StepRow,
)
from tracker.advice.step_order import numbers_by_order
from tracker.advice.traits import Recorded, find_traits
from tracker.columns import Columns
from tracker.detect.losses import LateCause, LateRank, RankTimes, explain_rank, find_late_rank
from tracker.detect.peers import FEWEST_STEPS, SLOWER
from tracker.detect.stages import TIMES, Stage, moves_work, stages_of
from tracker.profile import DEVICE_USE, NOT_LISTED, NOT_LISTED_COLLECTIVES, OP_FLOPS, CounterName, IdleCause, median
from tracker.profile.words import MICROBATCH_SETTINGS
from tracker.results import SLOW
from tracker.schema.column_names import (
    ATTRIBUTE,
    BYTES,
    CALLS,
    DEVICE_SELF_NS,
    DURATION_NS,
    HOST_SELF_NS,
    KERNEL_COUNT,
    KEY,
    KIND,
    MEAN,
    NAME,
    RANK,
    SELF_NS,
    SEQUENCE_SAVED_NS,
    SOURCE,
    START_NS,
    STEP,
    STEPS,
    TOTAL_NS,
    UNRELEASED_BYTES,
    VALUE,
)
from tracker.store import queries
from tracker.store.samples.statistics import mean_over_steps, over_ranks, over_steps
from tracker.table import is_among

if TYPE_CHECKING:
    from tracker.columns import F64
    from tracker.store import Store
    from tracker.store.queries.ops_and_kernels import StepRows

_RowOfRank = TypeVar("_RowOfRank", StepRow, CollectiveRow, LinkRow)
_NO_WORK: Final = ("communication", "memset", NOT_LISTED, NOT_LISTED_COLLECTIVES)
_VENDORS: Final = (("nvidia", "nvidia"), ("amd", "amd"), ("huawei", "ascend"))
_TORCH: Final = (
    "torch", "ascend", "deepspeed", "detectron2", "fairseq", "llamafactory", "megatron", "mmcv", "mmengine", "nanogpt",
    "nemo", "transformers",
)  # fmt: skip
_FRAMEWORKS: Final = (
    ("paddle", "paddle"), ("mindspore", "mindspore"), ("mindformers", "mindspore"),
    *((name, "torch") for name in _TORCH),
)  # fmt: skip
"""Part of a format, a fact or the name of a framework's log -> the framework."""
_LATE_OF_FEW: Final = 0.1
"""Part of the step by which a rank must be late where too few steps prove that it is more than chance."""
_CHANCE: Final = 0.05
"""How often chance may make any rank so much slower than its peers that it is called late."""
_ROTATES: Final = 0.02
"""Part of the step by which the longest waiting of any rank is above that of one, from which on it goes round."""
_NUMBERS: Final = re.compile(r"\d+")
_OLD_OPS: Final = (
    "cudnn_convolution_backward_input", "cudnn_convolution_backward_weight", "mkldnn_convolution_backward_input"
)  # fmt: skip
_OLD_VERSION: Final = (1, 10)
"""PyTorch 1.11 put the gradients of a convolution into one operator, convolution_backward."""
_KERNELS_OF: Final = (
    ("Default/", "mindspore"),
    ("phi::", "paddle"),
    ("at::native", "torch"),
    ("at::cuda", "torch"),
    ("aten::", "torch"),
    ("at6native", "torch"),
)
"""Part of the names of a framework's kernels, for profiles that do not name the framework."""


def _choose_kind(steps: Columns) -> str:
    """Return the kind of steps that took most time, "" where all are of one kind."""
    times: dict[str, float] = {}
    for kind, count, duration_ns in steps.rows(KIND, STEPS, DURATION_NS):
        if kind:
            times[kind] = times.get(kind, 0.0) + count * (duration_ns or 0)
    return max(sorted(times), key=lambda kind: times[kind]) if len(times) > 1 else ""


class RuntimeCalls(Struct, frozen=True):
    """Calls of functions of the device's runtime in a step of a rank: how many, their ns, the function that takes
    longest. `is_summary`: nothing says which of them others make; `steps`: in how many of `of_steps` they come.
    """

    calls: float = 0.0
    ns: float = 0.0
    longest: str = ""
    is_summary: bool = False
    steps: int = 0
    of_steps: int = 0


class UsualRank(Struct, frozen=True):
    """Where a rank stands in the job, and its times in a usual step, in ns; None where they are not known. `steps`: how
    many were captured.
    """

    stage: int | None
    host: str
    steps: int
    step_ns: float | None
    duration_ns: float | None
    whole_ns: float | None
    compute_ns: float | None
    exposed_communication_ns: float | None
    exposed_copy_ns: float | None
    idle_ns: float | None
    host_idle_ns: float | None
    data_loading_ns: float | None
    data_loading_idle_ns: float | None


class SlowRank(Struct, frozen=True):
    """A rank with the verdict SLOW. `cost_ns`: of each step; `ratio`: its own time by that of its peers;
    `slowest_steps`: in how many steps it takes longest.
    """

    rank: int
    cost_ns: float
    ratio: float
    slowest_steps: float
    cause: LateCause


class Evidence:
    """The numbers of a run that rules ask for. Times are ns of a usual step: medians over the steps of a rank (see
    `medians`), `step_ns` the number of the step as all commands print it. `microbatches`: None where nothing states
    them. `fired`: the rules that found something, which those of the environment need. Of steps of several kinds it has
    those of `step_kind`, None: those that took most time.
    """

    def __init__(
        self, store: Store, run_id: int, microbatches: int | None = None, step_kind: str | None = None
    ) -> None:
        self._store, self.run_id = store, run_id
        (self.run,) = queries.runs_by_id(store, [run_id]).structs(RunRow)
        self.facts = {str(key): str(value) for key, value in queries.facts(store, [run_id]).rows(KEY, VALUE)}
        self.device: Peaks | None = device_of(str(self.run.device), self.facts)
        self.captures = list(queries.captures(store, [run_id]).structs(CaptureRow))
        self.is_device = {row.timeline for row in self.captures} == {"device"}
        known = next((ours for name, ours in _VENDORS if name in str(self.run.vendor).lower()), "")
        self.source = self.run.format
        # Nsight Systems profiles devices of one vendor
        vendor_of_format = "nvidia" if self.source == "nsys_sqlite" else ""
        self.vendor = known or (vendor_of_format if self.is_device else "cpu")
        steps = queries.steps(store, [run_id])
        self.step_kind = _choose_kind(steps) if step_kind is None else step_kind
        if self.step_kind:
            is_own = np.array([kind == self.step_kind for kind in steps.listed(KIND)], dtype=bool)
            steps = steps.taken(is_own)
        self.asked_steps = queries.OfKind(self.step_kind) if self.step_kind else None
        self.steps = _by_rank(steps.structs(StepRow))
        self._own_steps = steps
        self.rank_steps = steps_of_ranks(steps)
        self.has_markers = _have_markers(self.captures, self.steps)
        with store.connect() as connection:
            placed = steps.rows(RANK, STEP, START_NS, DURATION_NS)
            self._numbers = numbers_by_order(connection, run_id, placed)
        stages = [(row.rank, row.stage) for row in self.captures]
        self.stages: list[Stage] = stages_of(stages, steps.rows(*TIMES), self._numbers)
        stated = (self.facts[key] for key in MICROBATCH_SETTINGS if self.facts.get(key, "").isdecimal())
        self.microbatches = microbatches or next((int(value) for value in stated if int(value) > 0), None)
        self.ranks = self._measure_ranks()
        self.fired: set[str] = set()

    def _measure_ranks(self) -> dict[int, UsualRank]:
        """Return each rank with its times in a usual step, as `show` has them. Without markers of steps the step is
        E2E.
        """
        ranks: dict[int, UsualRank] = {}
        for capture in self.captures:
            own = self.steps.get(capture.rank, [])
            weights = np.array([step.steps for step in own], dtype=np.float64)
            lasting = [step.duration_ns or step.whole_ns or None for step in own]
            if not self.has_markers:
                lasting = [step.e2e_ns or ns for step, ns in zip(own, lasting, strict=True)]
            ranks[capture.rank] = UsualRank(
                stage=capture.stage,
                host=capture.host,
                steps=sum(step.steps for step in own),
                step_ns=_reduce_steps(lasting, weights),
                duration_ns=_reduce_steps([step.duration_ns for step in own], weights),
                whole_ns=_reduce_steps([step.whole_ns for step in own], weights),
                compute_ns=_reduce_steps([step.compute_ns for step in own], weights),
                exposed_communication_ns=_reduce_steps([step.exposed_communication_ns for step in own], weights),
                exposed_copy_ns=_reduce_steps([step.exposed_copy_ns for step in own], weights),
                idle_ns=_reduce_steps([step.idle_ns for step in own], weights),
                host_idle_ns=_reduce_steps([step.host_idle_ns for step in own], weights),
                data_loading_ns=_reduce_steps([step.data_loading_ns for step in own], weights),
                data_loading_idle_ns=_reduce_steps([step.data_loading_idle_ns for step in own], weights),
            )
        return ranks

    def moves_work(self, stage: Stage) -> bool:
        """Return whether the ranks of a stage are known to do different work in the same step."""
        calls = queries.calls_of_steps(self._store, [self.run_id], stage.ranks)
        own_steps = {(rank, row.step) for rank, rows in self.steps.items() for row in rows}
        return bool(moves_work(stage, (call for call in calls if call[:2] in own_steps), self._numbers))

    @cached_property
    def roofline(self) -> Roofline:
        """What the device can do, and how near the work of the run comes to it."""
        return Roofline(
            MeasuredWork(
                pieces=self.pieces,
                launching=self.launching(WITH_FLOPS) if self.is_device else self.pieces,
                device=self.device,
                is_device=self.is_device,
                facts=self.facts,
                step_ns=self.step_ns,
                studied_ranks=len(self.studied),
                ranks=len(self.ranks),
            )
        )

    @cached_property
    def step_ns(self) -> float:
        """The step of the run; 0.0 where nothing is known."""
        known = [(row.step_ns, row.stage) for row in self.ranks.values() if row.step_ns]
        if not known:
            return 0.0
        values, stages = zip(*known, strict=True)
        of = np.array([-1 if stage is None else stage for stage in stages], dtype=np.int64)
        return float(over_ranks(np.array([values], dtype=np.float64), of)[0])

    @cached_property
    def studied(self) -> tuple[int, ...]:
        """The slowest rank of each stage of which there are pieces, by its time without exposed communication."""
        recorded = queries.filled_tables(self._store, [self.run_id])
        column = "has_kernels" if self.is_device else "has_ops"
        with_rows = {rank for rank, has_rows in recorded.rows(RANK, column) if has_rows}
        found: dict[int | None, tuple[float, int]] = {}
        for rank, row in self.ranks.items():
            own = max(row.duration_ns or 0.0, row.whole_ns or 0.0) - (row.exposed_communication_ns or 0.0)
            # a rank that recorded its collectives alone has kernels, and no work
            if rank in with_rows and (not self.is_device or row.compute_ns):
                found[row.stage] = max(found.get(row.stage, (-1.0, 0)), (own, -rank))
        return tuple(sorted(-rank for _, rank in found.values()))

    @cached_property
    def pieces(self) -> list[WorkPiece]:
        """The work of the studied ranks in the steps, copies included, collectives not."""
        if not self.studied:
            return []
        if self.is_device:
            return [piece_of_kernel(at, row) for at, row in enumerate(self._kernels)]
        pieces = []
        for at, row in enumerate(self._ops):
            pieces.append(piece_of_op(at, row, row.host_self_ns, stated_flops=self._find_stated_flops(row)))
        return pieces

    def _find_stated_flops(self, row: OpRow) -> float | None:
        """Return the FLOPs of a call of an operator, where the source says more than shapes."""
        return self.counters.get((OP_FLOPS, row.name, row.input_shapes))

    @cached_property
    def work(self) -> dict[int, list[WorkPiece]]:
        """The pieces of each studied rank without copies."""
        found: dict[int, list[WorkPiece]] = {rank: [] for rank in self.studied}
        for piece in self.pieces:
            if piece.kind != "copy" and piece.calls:
                found[piece.rank].append(piece)
        return found

    def launching(self, names: Collection[str]) -> list[WorkPiece]:
        """The operators of these names that launch kernels, with the time of all that one call launches, and name and
        kind of the longest of them; kernels where nothing says which operator launched them.
        """
        found = [piece for piece in self.pieces if not piece.op_shapes]
        longest: dict[tuple[int, str, str], WorkPiece] = {}
        for piece in self.pieces:
            key = (piece.rank, piece.op, piece.op_text)
            if piece.op_shapes and piece.ns > (longest[key].ns if key in longest else -1.0):
                longest[key] = piece
        for row in self._ops:
            is_wanted = row.name.rpartition("::")[2].rstrip("_") in names
            kernel = longest.get((row.rank, row.name, row.input_shapes)) if is_wanted else None
            if kernel is not None and row.kernel_count:
                of_op = piece_of_op(kernel.at, row, row.device_self_ns, stated_flops=self._find_stated_flops(row))
                found.append(replace(of_op, name=kernel.name, kind=kernel.kind))
        return found

    @cached_property
    def knows_sequences(self) -> bool:
        """Whether the order of kernels is known: in which sequences of elementwise kernels each stands."""
        return self.is_device and bool(self.studied) and SEQUENCE_SAVED_NS in self._step_kernels.known

    @cached_property
    def _step_kernels(self) -> StepRows:
        return queries.step_kernels(self._store, [self.run_id], ranks=self.studied, steps=self.asked_steps)

    @cached_property
    def _kernels(self) -> list[KernelRow]:
        usual = self._reduce_to_usual(self._step_kernels, (CALLS, TOTAL_NS, BYTES, SEQUENCE_SAVED_NS))
        return [row for row in usual.structs(KernelRow) if row.category not in _NO_WORK]

    @cached_property
    def _ops(self) -> list[OpRow]:
        found = queries.step_ops(self._store, [self.run_id], ranks=self.studied, steps=self.asked_steps)
        usual = self._reduce_to_usual(found, (CALLS, HOST_SELF_NS, DEVICE_SELF_NS, KERNEL_COUNT))
        return list(usual.structs(OpRow))

    def _reduce_to_usual(self, found: StepRows, names: Sequence[str]) -> Columns:
        """Return a row per studied rank and key with the numbers of a usual step."""
        studied = {rank: self.rank_steps[rank] for rank in self.studied if rank in self.rank_steps}
        usual = reduce_rows(found, studied, names)
        return found.texts.taken(usual.key).having(rank=usual.rank, **usual.numbers)

    @cached_property
    def code(self) -> CodePlaces:
        """From where the operators of the studied ranks are called, where call stacks were recorded."""
        found = queries.op_stacks(self._store, [self.run_id], ranks=self.studied, steps=self.asked_steps)
        return CodePlaces(found)

    def op_calls(self, rank: int, names: Sequence[str]) -> dict[str, float]:
        """How often operators of these names run in a step of a studied rank, the most often first."""
        found: dict[str, float] = {}
        for row in self._ops:
            if row.rank == rank and row.name in names and row.calls:
                found[row.name] = found.get(row.name, 0.0) + row.calls
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))

    @cached_property
    def api(self) -> Columns:
        """Calls of the device's runtime of the studied ranks inside the steps, a row per rank, step and function; of
        the whole capture where a summary does not say in which step and there is one.
        """
        if not self.studied:
            return Columns({})
        found = self._ask(queries.api, by=("rank", "step"), in_steps=True, ranks=self.studied)
        if not len(found) and all(self.step_count(rank) == 1 for rank in self.studied):
            found = self._ask(queries.api, by=("rank",), ranks=self.studied)
            of_rank = {rank: int(own.numbers[0]) for rank, own in self.rank_steps.items()}
            found = found.having(step=np.array([of_rank[rank] for rank in found.listed(RANK)], dtype=np.int64))
        return found

    def calls_of(self, rank: int, is_meant: Callable[[str], bool], after: int = 0) -> RuntimeCalls:
        """Return the calls of functions of the runtime whose names are meant in a step of a rank: the median of the
        steps, or of those after the first `after` the mean.
        """
        own = self.rank_steps.get(rank)
        if own is None or not len(self.api):
            return RuntimeCalls()
        names = self.api[NAME]
        meant = {name for name in set(names.tolist()) if is_meant(name)}
        later = own.numbers[after:]
        step = self.api.integers(STEP)
        rows = (self.api.integers(RANK) == rank) & np.isin(step, later) & is_among(names, meant)
        found = self.api.taken(rows)
        if not len(found):
            return RuntimeCalls()
        place = np.searchsorted(own.numbers, step[rows])
        sums = [np.bincount(place, np.nan_to_num(found.reals(name)), len(own.numbers)) for name in (CALLS, TOTAL_NS)]
        reduce = mean_over_steps if after else over_steps
        table = np.array(sums)[:, after:] / own.weights[after:]
        calls, ns = reduce(table, own.weights[after:]).tolist()
        return RuntimeCalls(
            calls=calls, ns=ns, longest=str(found[NAME][np.argmax(np.nan_to_num(found.reals(TOTAL_NS)))]),
            is_summary=not found.known(SELF_NS).any(), steps=len(set(step[rows].tolist())), of_steps=len(later),
        )  # fmt: skip

    @cached_property
    def step_collectives(self) -> StepCollectives:
        """The collectives of all ranks in their steps."""
        rows = self._ask(queries.communication, by=("rank", "step"), in_steps=True)
        return StepCollectives(rows, self._own_steps)

    @cached_property
    def collectives(self) -> dict[tuple[str, str], dict[int, UsualCollectives]]:
        """Communication of a usual step by the role of its groups and the kind of the collective, of each rank: see
        `StepCollectives.sum_by`.
        """
        return self.step_collectives.sum_by(lambda role, kind: (role, kind))

    @cached_property
    def roles(self) -> frozenset[str]:
        """Roles of the groups that communicate."""
        return frozenset(role for role, _ in self.collectives)

    @cached_property
    def waits(self) -> dict[int, RankWaits]:
        """Exposed waiting of each rank in a usual step."""
        return self.step_collectives.waits_of_ranks()

    @cached_property
    def rotating_wait_ns(self) -> float:
        """The longest waiting of any rank in a usual step, where that is 2 % of the step more than that of one rank:
        now one rank waits and now another; 0.0 where it is not.
        """
        longest = max((own.least for own in self.waits.values()), default=0.0)
        if self.is_pipeline or self.late_rank is not None:
            return 0.0
        rotating = self.step_collectives.rotating_wait_ns()
        return rotating if rotating - longest >= _ROTATES * self.step_ns > 0 else 0.0

    @cached_property
    def rank_times(self) -> tuple[RankTimes, ...]:
        """The times of each rank in a usual step, for what ranks and stages lose to each other."""
        found = []
        for rank, row in self.ranks.items():
            waits = self.waits.get(rank)
            stage = next((one for one in self.stages if rank in one.ranks and one.steps), None)
            own_ns = None if stage is None else float(median(stage.own[stage.ranks.index(rank)]))
            idle_ns = row.idle_ns
            found.append(
                RankTimes(
                    rank=rank, stage=row.stage, step_ns=row.step_ns, own_ns=own_ns,
                    wait_ns=waits.whole if waits else None, bubble_ns=waits.bubble if waits else None,
                    compute_ns=row.compute_ns, exposed_copy_ns=row.exposed_copy_ns,
                    data_loading_ns=row.data_loading_ns,
                    idle_ns=None if idle_ns is None else idle_ns - (row.data_loading_idle_ns or 0.0),
                )
            )  # fmt: skip
        return tuple(found)

    @cached_property
    def slow_ranks(self) -> tuple[SlowRank, ...]:
        """The ranks that their peers prove slow."""
        slow_ranks = []
        for stage in self.stages:
            judged = stage.judged
            peers = [times for times in self.rank_times if times.rank in stage.ranks]
            for at, rank in enumerate(stage.ranks):
                if judged.verdict[at] == SLOW:
                    cost_ns, ratio, slowest = (float(one[at]) for one in (judged.cost, judged.ratio, judged.slowest))
                    slow_ranks.append(SlowRank(rank, cost_ns, ratio, slowest, explain_rank(peers, rank, cost_ns)))
        return tuple(slow_ranks)

    @cached_property
    def late_rank(self) -> LateRank | None:
        """The rank that the others wait for; None where another one may be the last: one that tasks name better, or
        that was not captured.
        """
        is_known = self.has_whole_groups and not self.names_peers
        late = find_late_rank(self.rank_times) if is_known else None
        return late if late is not None and self._proves_late(late) else None

    def _proves_late(self, late: LateRank) -> bool:
        """Return whether a rank is late by more than chance makes one of several, in one of twenty jobs; of too few
        steps to say that, late by a tenth of them.
        """
        stage = next((one for one in self.stages if late.rank in one.ranks and one.steps), None)
        if stage is None or len(stage.steps) < FEWEST_STEPS:
            return late.ns >= _LATE_OF_FEW * self.step_ns
        at = stage.ranks.index(late.rank)
        return bool(stage.judged.q[at] <= _CHANCE and stage.judged.ratio[at] >= SLOWER)

    @cached_property
    def communication(self) -> dict[int, list[CollectiveRow]]:
        """The collectives inside the steps of each rank, over all steps: what they are, not how long they take."""
        return _by_rank(self._ask(queries.communication, by=(RANK,), in_steps=True).structs(CollectiveRow))

    @cached_property
    def names_peers(self) -> bool:
        """Whether tasks of collectives name the ranks that they wait for."""
        return len(self._ask(queries.communication_waits, by=(RANK,), in_steps=True)) > 0

    @cached_property
    def _groups(self) -> list[GroupRow]:
        return list(queries.run_groups(self._store, [self.run_id]).structs(GroupRow))

    @cached_property
    def has_whole_groups(self) -> bool:
        """Whether all ranks of all groups that are known were captured."""
        return all(row.members is None or (row.captured or 0) >= row.members for row in self._groups)

    def name_waited_for(self, rank: int) -> tuple[str, float]:
        """Return the rank that a rank waits for longest in a step, and how long, where its tasks name it; "" for none.
        Where it waits for several at once these times are no parts of its waiting.
        """
        rows = self._ask(queries.communication_waits, by=("rank", "step"), in_steps=True, ranks=[rank])
        found = longest_waited_for(rows, self.rank_steps[rank]) if len(rows) else None
        if found is None:
            return "", 0.0
        peer, is_global, ns = found
        absent = ", which was not captured" if is_global and peer not in self.ranks else ""
        return f"rank {peer}{'' if is_global else ' of the group'}{absent}", ns

    def why_waiting_is_unknown(self, role: str) -> str:
        """Return why nothing splits the collectives of a role into waiting and transit."""
        groups = [row for row in self._groups if (row.group_role or UNKNOWN) == role]
        partly = [row for row in groups if row.members is not None and (row.captured or 0) < row.members]
        if partly:
            return f"not known, {partly[0].captured or 0} of {partly[0].members} ranks of a group are captured"
        if not groups or any(row.members is None for row in groups):
            return "not known, the captures do not say which ranks are in the group"
        return "not known, the calls of its ranks could not be matched"

    @cached_property
    def links(self) -> dict[int, list[LinkRow]]:
        """What each rank moved over links, over all of the capture, by packet size where it is known."""
        return _by_rank(self._ask(queries.communication_links, by=(RANK,)).structs(LinkRow))

    @cached_property
    def kept_bytes(self) -> dict[tuple[int, int], int]:
        """Of rank and step the bytes that were allocated in it and not freed in the capture, where that is known."""
        found: dict[tuple[int, int], int] = defaultdict(int)
        memory = self._ask(queries.memory, by=(RANK, STEP), in_steps=True)
        for rank, step, kept in memory.rows(RANK, STEP, UNRELEASED_BYTES):
            found[rank, step] += kept or 0
        return found

    def _ask(self, question: queries.Question, **chosen: Any) -> Columns:
        if self.asked_steps is not None and chosen.get("in_steps", True):
            return question(self._store, [self.run_id], steps=self.asked_steps, **chosen)
        return question(self._store, [self.run_id], **chosen)

    def step_count(self, rank: int) -> int:
        """How many steps of a rank were captured, 1 where none is marked."""
        return self.ranks[rank].steps or 1

    @cached_property
    def framework(self) -> str:
        """torch, paddle or mindspore: by the format and the facts, else by the names of kernels; "" where none says."""
        named = f"{self.source} {' '.join(self.facts)} {self.facts.get('framework', '')}".lower()
        stated = next((ours for name, ours in _FRAMEWORKS if name in named), "")
        if stated:
            return stated
        names = " ".join(self.names_of_work)
        return next((ours for part, ours in _KERNELS_OF if part in names), "")

    @cached_property
    def names_of_work(self) -> frozenset[str]:
        """Names of the kernels, and of the operators, of the studied ranks."""
        kernels = {piece.name for piece in self.pieces}
        launching = {piece.op for piece in self.pieces}
        return frozenset(kernels | launching | {row.name for row in self._ops})

    @cached_property
    def names_of_calls(self) -> frozenset[str]:
        """Names of the runtime calls of the studied ranks."""
        return frozenset(self.api.listed(NAME)) if len(self.api) else frozenset()

    @cached_property
    def is_pipeline(self) -> bool:
        """Whether the ranks are stages of a pipeline."""
        return len({row.stage for row in self.ranks.values()}) > 1

    @cached_property
    def counters(self) -> dict[CounterName, float]:
        """What the sources state of the whole run, by source, name and attribute: the mean of the ranks."""
        found: dict[CounterName, list[float]] = {}
        counters = self._ask(queries.counters, by=(RANK,), in_steps=False)
        for source, name, attribute, mean in counters.rows(SOURCE, NAME, ATTRIBUTE, MEAN):
            if mean is not None:
                found.setdefault((source, name, attribute), []).append(mean)
        return {name: fmean(values) for name, values in found.items()}

    @cached_property
    def stated_idle_ns(self) -> float | None:
        """The step less what the profiler itself says that its devices work, where no event says why they idle."""
        used = [value for (source, name, _), value in self.counters.items()
                if source == DEVICE_USE and not name.startswith("CPU")]  # fmt: skip
        return max(0.0, 1 - fmean(used) / 100) * self.step_ns if used else None

    def unexplained_idle_ns(self, rank: int) -> float:
        """The idle time of a rank per step without a cause, data loading aside; 0.0 where none is known."""
        if not self.is_device:
            return 0.0
        row = self.ranks[rank]
        if rank in self.studied and self.says_why_idle:
            return sum(self.idle_of(rank, IdleCause.UNKNOWN).values())
        if row.idle_ns is None:
            return max(0.0, (self.stated_idle_ns or 0.0) - (row.data_loading_ns or 0.0))
        return max(0.0, row.idle_ns - (row.data_loading_idle_ns or 0.0))

    @cached_property
    def platform(self) -> Platform:
        """Whom remedies are for. Where no version is stated, an operator that only old versions have says so."""
        stated = _NUMBERS.findall(self.facts.get(f"{self.framework}_version", ""))
        version = tuple(int(part) for part in stated[:2])
        if not version and any(piece.plain_op in _OLD_OPS for piece in self.pieces):
            version = _OLD_VERSION
        recorded = Recorded(
            source=self.source, names=self.names_of_work, calls=self.names_of_calls, places=self.idle.places,
            phases={piece.phase for piece in self.pieces}, ranks=len(self.ranks),
            settings=[queries.settings_of(row.settings) for row in self.captures],
            stages=len({row.stage for row in self.ranks.values()}),
            steps=max((self.step_count(rank) for rank in self.ranks), default=0),
        )  # fmt: skip
        return Platform(self.vendor, self.framework, version, self.source, find_traits(recorded))

    @cached_property
    def idle(self) -> StepIdle:
        """Why the devices of the studied ranks do nothing in their steps."""
        rows = Columns({})
        if self.is_device and self.studied:
            rows = self._ask(queries.idle, by=("rank", "step"), in_steps=True, ranks=self.studied)
        return StepIdle(rows, self.rank_steps)

    @property
    def says_why_idle(self) -> bool:
        """Whether the source says of any idle time why."""
        return self.idle.says_why

    def idle_of(self, rank: int, *causes: IdleCause) -> dict[str, float]:
        """Return the idle time of a rank per step by place, of these causes, the largest first; '' for no place."""
        return self.idle.of_causes(rank, *causes)

    @cached_property
    def idle_ns(self) -> dict[int, float]:
        """Of each studied rank the idle time per step, data loading aside: what advice on idle time can win at most.
        Where the source does not say why the device idles, that in which nothing was launched, or all of it where
        launches are not known. On a host nothing idles that is known.
        """
        if not self.is_device:
            return {}
        if self.says_why_idle:
            others = [cause for cause in IdleCause if cause is not IdleCause.DATA_LOADING]
            return {rank: sum(self.idle_of(rank, *others).values()) for rank in self.studied}
        found = {}
        for rank in self.studied:
            row = self.ranks[rank]
            if row.idle_ns is not None:
                waits_for_host = row.idle_ns if row.host_idle_ns is None else row.host_idle_ns
                found[rank] = max(0.0, waits_for_host - (row.data_loading_idle_ns or 0.0))
        return found


def _reduce_steps(values: Sequence[float | None], weights: F64) -> float | None:
    """Return the number of a usual step of a rank; None where no step has one."""
    if all(value is None for value in values):
        return None
    table = np.array([[np.nan if value is None else value for value in values]], dtype=np.float64)
    return float(over_steps(table, weights)[0])


def _have_markers(captures: Sequence[CaptureRow], steps: Mapping[int, Sequence[StepRow]]) -> bool:
    """Return whether anything marks steps: a capture without is one step, 0, as long as the capture."""
    if any(len(own) != 1 or own[0].step != 0 for own in steps.values()):
        return True
    pairs = [(row.duration_ns, own.duration_ns) for row in captures for own in steps.get(row.rank, ())]
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def _by_rank(rows: Iterable[_RowOfRank]) -> dict[int, list[_RowOfRank]]:
    found: dict[int, list[_RowOfRank]] = {}
    for row in rows:
        found.setdefault(row.rank, []).append(row)
    return found
