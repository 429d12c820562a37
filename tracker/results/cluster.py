"""The ranks of one run beside each other: the content of `tracker cluster`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final

from msgspec import Struct, field

from tracker.columns import Columns
from tracker.results.options import STEP_KIND, WORKLOAD, Microbatches, Ranks, Reading, Stage, Steps, only_sections
from tracker.results.screens import Result, Rows, columns_of_rows, frames

__all__ = ["CLUSTER_SECTIONS", "SLOW", "SUSPECT", "UNEVEN", "Cluster", "ClusterOptions"]

SLOW: Final = "SLOW"
SUSPECT: Final = "SUSPECT"
UNEVEN: Final = "UNEVEN"


class RankRow(Struct, frozen=True, kw_only=True):
    """A captured rank. Its peers are the captured ranks of its stage; times are medians over its steps.

    - host, stage: None where the captures name none
    - steps: how many of its steps were captured
    - step_ns: the duration of a step, the span of the device where none is stated
    - own_ns: a step without exposed communication, which is what the rank would take alone; the step is here the longer
      of its duration and of the span of the device; over the steps that all ranks of the stage have
    - own_ratio: own time by the median of its peers that are not slow; excess_ns: own time less that median
    - cost_ns: what a step would save if the rank were as fast as the next slowest one that is not slow; below 0: by how
      much it is quicker than the longest
    - slowest_steps: in how many steps it took longest, of a SLOW rank longer than all that are not slow
    - q: how often chance makes any rank of the job that much longer, where steps follow each other; None below 3 steps
    - verdict: of an own_ratio of 1.05 or more SLOW (q <= 0.01) or SUSPECT (q <= 0.05); None, too, where more than half
      of the ranks would have one
    - cause: data loading, host, copies, slow device, more work or compute; None where half of it is of no one kind, and
      without a verdict
    - place: the operator or range in which a slow host spends its time
    - partial: 1 where records are lost or cannot be: it is not judged, and no rank is compared with it; else None
    - device_score: how fast its kernels are, 1 for as fast as the fastest peer's; None on a host, or without work that
      all ranks have
    - late_calls: collectives that it joined last; None without a common clock
    - wait_ns: waiting for other ranks; bubble_ns: exposed waiting for other stages
    """

    rank: int
    host: str | None = None
    stage: int | None = None
    steps: int | None = None
    step_ns: float | None = None
    own_ns: float | None = None
    own_ratio: float | None = None
    excess_ns: float | None = None
    cost_ns: float | None = None
    slowest_steps: int | None = None
    q: float | None = None
    verdict: str | None = None
    cause: str | None = None
    place: str | None = None
    partial: int | None = None
    device_score: float | None = None
    late_calls: int | None = None
    compute_ns: float | None = None
    exposed_communication_ns: float | None = None
    communication_ns: float | None = None
    overlap_ns: float | None = None
    wait_ns: float | None = None
    idle_ns: float | None = None
    data_loading_ns: float | None = None
    bubble_ns: float | None = None
    preparing_ns: float | None = None
    peak_allocated_bytes: int | None = None


class RankStepRow(Struct, frozen=True, kw_only=True):
    """The own time of one rank in one step.

    - own_ns: the step without exposed communication
    - own_ratio: by the median of all its peers in this step; None for a rank without peers
    """

    rank: int
    step: int
    own_ns: int
    own_ratio: float | None


class HostRow(Struct, frozen=True, kw_only=True):
    """The ranks of a host together, judged as ranks are.

    - ranks: how many of its ranks are compared
    - own_ratio: the median of its ranks, each by the median of its stage, to the other hosts
    - steps: those that all stages have; slowest_steps: in how many of them the host took longest
    - q, verdict: as of a rank; a host is slow only where its ranks are alike
    """

    host: str
    ranks: int
    own_ratio: float | None
    steps: int
    slowest_steps: int
    q: float | None
    verdict: str | None


class StageRow(Struct, frozen=True, kw_only=True):
    """A stage of a pipeline, or all ranks of a job without stages. Times are medians over its ranks.

    - stage: its number, None for no stage; ranks: how many are compared
    - own_max_ns, own_max_rank: the longest own time, and whose it is; None without a step that all ranks have
    - spread: median over the steps of the largest own time by the median one
    - verdict: UNEVEN where the spread is 1.10 or more in 3 steps or more, no rank has a verdict or is slowest in 80 %
      of them, and 1 % of the calls differ between ranks, not by one rank alone
    - bubble_ns: exposed waiting for other stages; bubble_share: of the step
    - profiler_bubble_ns: what the profiler calls so
    - preparing_ns: in which the profiler says that a step is prepared
    - tau_ns: the largest own time by the microbatches (model_ns takes the largest of each step)
    """

    stage: int | None
    ranks: int
    step_ns: float | None
    own_ns: float | None
    own_max_ns: float | None
    own_max_rank: int | None
    spread: float | None
    verdict: str | None
    compute_ns: float | None
    exposed_communication_ns: float | None
    idle_ns: float | None
    bubble_ns: float | None
    bubble_share: float | None
    profiler_bubble_ns: float | None
    preparing_ns: float | None
    tau_ns: float | None


class PipelineRow(Struct, frozen=True, kw_only=True):
    """The pipeline by its closed form; times are medians over the steps, None without the number of microbatches.

    - microbatches_from: the option or the key of the configuration that gives it
    - model_ns: sum of tau + (microbatches - 1) x the largest tau
    - even_ns: with stages as fast as their median rank; flat_ns: with equal stages
    - slowdown: model_ns by that of equal ranks (Lin et al., OSDI'25)
    - ideal_bubble_share: what a pipeline of equal stages waits
    """

    stages: int
    microbatches: int | None
    microbatches_from: str | None
    model_ns: float | None = None
    even_ns: float | None = None
    flat_ns: float | None = None
    slowdown: float | None = None
    ideal_bubble_share: float | None = None


class RoleRow(Struct, frozen=True, kw_only=True):
    """The communication of a rank by parallel type; medians of its steps.

    - role: such as dp, tp or pp; unknown where nothing names it
    - exposed_ns: without compute beside it; exposed_share: of the time
    - wait_ns: waiting for other ranks
    """

    role: str
    rank: int
    calls: float | None
    total_ns: float | None
    exposed_ns: float | None
    exposed_share: float | None
    wait_ns: float | None


class PeerRow(Struct, frozen=True, kw_only=True):
    """How long a rank waits in collectives for another one; medians of its steps.

    - peer: whom it waits for: a rank of the job, or its place in a group whose members are not known
    - is_global: 1 for a rank of the job, 0 for a place
    - captured: 1 or 0, None where that cannot be told
    - longest_ns: of one call
    - told_by: tasks, which name their peer (several at once), or ranks: who comes last in calls of a complete group
    """

    rank: int
    role: str
    peer: int
    is_global: int
    captured: int | None
    calls: float | None
    wait_ns: float | None
    longest_ns: int
    told_by: str


class GroupRow(Struct, frozen=True, kw_only=True):
    """The collectives of one kind in a process group, over the whole capture, summed over its captured ranks.

    - ranks: its members, or those that were captured
    - calls: of the rank with most of them
    - bytes, exposed_ns: of all its ranks, None where one is not known
    - transit_ns: of the rank with most; wait_ns: of all; both None for a group of one rank, one that is not captured
      whole, and where a transit is not known
    - most_wait_rank: who waits longest
    - bus_gb_per_s: median of the calls of 1 MB or more, as in nccl-tests, of all_reduce, broadcast and reduce: of the
      others it is not known whose bytes a profile counts
    - complete: 1 where all members are captured; captured: how many are
    """

    role: str
    ranks: str
    kind: str
    calls: int
    bytes: int | None
    elapse_ns: int
    transit_ns: int | None
    wait_ns: int | None
    most_wait_rank: int | None
    exposed_ns: int | None
    bus_gb_per_s: float | None
    complete: int
    captured: int


class CallRow(Struct, frozen=True, kw_only=True):
    """One of the longest collectives of complete groups.

    - order: its place among the calls of its first rank
    - elapse_ns: of the rank that was longest in it; transit_ns: of the one that was shortest
    - last_rank: who came last, None where several did or the ranks have no common clock; late_ns: behind the first one
    """

    role: str
    ranks: str
    kind: str
    order: int
    step: int
    bytes: int | None
    elapse_ns: int
    transit_ns: int
    last_rank: int | None
    late_ns: int | None


class RankLinkRow(Struct, frozen=True, kw_only=True):
    """A link between two ranks, over all collectives and the whole capture.

    - bandwidth_gb_per_s: bytes by transit time
    - z: by how many robust deviations it is slower than the median link of its transport, below 0 for faster; None for
      less than 1 MB, for fewer than 4 such links, and for a slower one where all others are equal, which may be SLOW
    - verdict: SLOW or None; place: link, sender or receiver, of a slow one
    """

    transport: str
    source_rank: int
    target_rank: int
    bytes: int
    transit_ns: int
    bandwidth_gb_per_s: float | None
    z: float | None = None
    verdict: str | None = None
    place: str | None = None


class RankOperatorRow(Struct, frozen=True, kw_only=True):
    """A kernel, or an operator on a host, over the ranks of a stage, in all of their steps.

    - ranks: how many have it; calls: of all of them; fewest_calls, most_calls: of one
    - average_ns: of a call
    - median_ns, min_ns, max_ns: of the ranks; spread_ns: max_ns - min_ns; variation: standard deviation by mean,
      None for one rank
    - saving_ns: max_ns - median_ns
    """

    stage: int | None
    name: str
    input_shapes: str
    ranks: int
    calls: float
    fewest_calls: float
    most_calls: float
    total_ns: float
    average_ns: float
    median_ns: float
    min_ns: float
    min_rank: int
    max_ns: float
    max_rank: int
    spread_ns: float
    variation: float | None
    saving_ns: float


class BalanceRow(Struct, frozen=True, kw_only=True):
    """The rank of a stage with most of a quantity.

    - quantity: compute (ns per step), all_to_all (bytes over the whole capture) or peak memory; unit: ns or bytes
    - ranks: how many state it; imbalance: the largest by the mean, a factor
    """

    stage: int | None
    quantity: str
    unit: str
    ranks: int
    mean: float
    max: float
    max_rank: int
    imbalance: float


class ChangeRow(Struct, frozen=True, kw_only=True):
    """A number of two runs; the second run is the candidate.

    - section: the table that it is of; name: which row of it
    - unit: ns, ratio, or number (GB/s, slowdown, imbalance)
    - delta, diff: None where one run lacks it; diff, too, for a baseline of 0
    """

    section: str
    name: str
    metric: str
    unit: str
    baseline_value: float | None
    candidate_value: float | None
    delta: float | None
    diff: float | None


class ClusterRows(Struct, frozen=True, kw_only=True):
    """The rows of each table of `Cluster`, in the order in which they are shown."""

    ranks: tuple[RankRow, ...] = ()
    steps: tuple[RankStepRow, ...] = ()
    hosts: tuple[HostRow, ...] = ()
    stages: tuple[StageRow, ...] = ()
    pipeline: tuple[PipelineRow, ...] = ()
    roles: tuple[RoleRow, ...] = ()
    peers: tuple[PeerRow, ...] = ()
    groups: tuple[GroupRow, ...] = ()
    calls: tuple[CallRow, ...] = ()
    links: tuple[RankLinkRow, ...] = ()
    operators: tuple[RankOperatorRow, ...] = ()
    balance: tuple[BalanceRow, ...] = ()
    changes: tuple[ChangeRow, ...] = ()


CLUSTER_SECTIONS: Final = ClusterRows.__struct_fields__[:-1]
"""Tables that --only may name: changes needs two runs."""


class ClusterOptions(Reading, frozen=True, kw_only=True):
    """Which ranks and steps are compared, and how profiles on disk are read."""

    workload: Annotated[str | None, WORKLOAD] = None
    ranks: Ranks = ()
    stage: Stage = None
    steps: Steps = ()
    step_kind: Annotated[str | None, STEP_KIND] = None
    microbatches: Microbatches = None
    only: Annotated[tuple[str, ...], only_sections(CLUSTER_SECTIONS)] = ()


class Cluster(Result, frozen=True, eq=False, dict=True):
    """The ranks of one run, for `tracker cluster`: who holds the job back, what waits for whom, which link is weak.

    `run`: what `tracker runs` lists of it. Times are ns per step unless said, sizes bytes; NA is not known. `answer`:
    the headline, which is the largest loss of a step that is known; `verdict`: SLOW or SUSPECT where a rank or host is,
    whatever costs most, UNEVEN, or "" for none. `missing`: what the captures cannot tell, and the profiler option that
    would. `rows`: of each table; what its columns mean stands with its row: `RankRow`, `HostRow`, ...
    """

    word: ClassVar[str] = "cluster"
    printed_by: ClassVar[str] = "tracker cluster RUN"
    json_fields: ClassVar[tuple[str, ...]] = ("headline", "run", "baseline", "verdict", "remarks", "missing", "notes")

    run: Mapping[str, Any]
    rows: ClusterRows
    answer: str
    verdict: str = ""
    remarks: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    baseline: Mapping[str, Any] | None = None
    options: ClusterOptions = field(default_factory=ClusterOptions)

    ranks, steps, hosts, stages, pipeline, roles, peers, groups, calls, links, operators, balance, changes = frames(13)

    @cached_property
    def tables(self) -> Mapping[str, Columns]:
        """The rows of each table as columns, by name."""
        return columns_of_rows(self.rows)

    def chosen_tables(self, only: Sequence[str] = (), limit: int | None = None) -> dict[str, Rows]:
        """Return the chosen tables; changes where there are two runs."""
        chosen: dict[str, Rows] = {}
        for name, rows in self.tables.items():
            is_left_out = name not in only if only else name == "changes" and self.baseline is None
            if not is_left_out:
                chosen[name] = rows.head(limit)
        return chosen

    @property
    def headline(self) -> str:
        """Who holds the job back, by how much, and how sure that is."""
        return self.answer
