"""The ranks of one run beside each other: the content of `tracker cluster`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from msgspec import field

from tracker.results.options import STEP_KIND, WORKLOAD, Microbatches, Ranks, Reading, Stage, Steps, only_sections
from tracker.results.screens import Result, Rows, frames

if TYPE_CHECKING:
    from tracker.columns import Columns

__all__ = ["CLUSTER_COLUMNS", "CLUSTER_SECTIONS", "SLOW", "SUSPECT", "UNEVEN", "Cluster", "ClusterOptions"]

SLOW: Final = "SLOW"
SUSPECT: Final = "SUSPECT"
UNEVEN: Final = "UNEVEN"

CLUSTER_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "ranks": (
        "rank", "host", "stage", "steps", "step_ns", "own_ns", "own_ratio", "excess_ns", "cost_ns", "slowest_steps",
        "q", "verdict", "cause", "place", "partial", "device_score", "late_calls", "compute_ns",
        "exposed_communication_ns", "communication_ns", "overlap_ns", "wait_ns", "idle_ns", "data_loading_ns",
        "bubble_ns", "preparing_ns", "peak_allocated_bytes",
    ),
    "steps": ("rank", "step", "own_ns", "own_ratio"),
    "hosts": ("host", "ranks", "own_ratio", "steps", "slowest_steps", "q", "verdict"),
    "stages": (
        "stage", "ranks", "step_ns", "own_ns", "own_max_ns", "own_max_rank", "spread", "verdict", "compute_ns",
        "exposed_communication_ns", "idle_ns", "bubble_ns", "bubble_share", "profiler_bubble_ns", "preparing_ns",
        "tau_ns",
    ),
    "pipeline": (
        "stages", "microbatches", "microbatches_from", "model_ns", "even_ns", "flat_ns", "slowdown",
        "ideal_bubble_share",
    ),
    "roles": ("role", "rank", "calls", "total_ns", "exposed_ns", "exposed_share", "wait_ns"),
    "peers": ("rank", "role", "peer", "is_global", "captured", "calls", "wait_ns", "longest_ns", "told_by"),
    "groups": (
        "role", "ranks", "kind", "calls", "bytes", "elapse_ns", "transit_ns", "wait_ns", "most_wait_rank",
        "exposed_ns", "bus_gb_per_s", "complete", "captured",
    ),
    "calls": (
        "role", "ranks", "kind", "order", "step", "bytes", "elapse_ns", "transit_ns", "last_rank", "late_ns",
    ),
    "links": (
        "transport", "source_rank", "target_rank", "bytes", "transit_ns", "bandwidth_gb_per_s", "z", "verdict",
        "place",
    ),
    "operators": (
        "stage", "name", "input_shapes", "ranks", "calls", "fewest_calls", "most_calls", "total_ns", "average_ns",
        "median_ns", "min_ns", "min_rank", "max_ns", "max_rank", "spread_ns", "variation", "saving_ns",
    ),
    "balance": ("stage", "quantity", "unit", "ranks", "mean", "max", "max_rank", "imbalance"),
    "changes": (
        "section", "name", "metric", "unit", "baseline_value", "candidate_value", "delta", "diff",
    ),
}  # fmt: skip
CLUSTER_SECTIONS: Final = tuple(CLUSTER_COLUMNS)[:-1]


class ClusterOptions(Reading, frozen=True, kw_only=True):
    """Which ranks and steps are compared, and how profiles on disk are read."""

    workload: Annotated[str | None, WORKLOAD] = None
    ranks: Ranks = ()
    stage: Stage = None
    steps: Steps = ()
    step_kind: Annotated[str | None, STEP_KIND] = None
    microbatches: Microbatches = None
    only: Annotated[tuple[str, ...], only_sections(CLUSTER_SECTIONS)] = ()


class Cluster(Result, frozen=True, eq=False):
    """The ranks of one run, for `tracker cluster`: who holds the job back, what waits for whom, which link is weak.

    `run`: what `tracker runs` lists of it. Times are ns per step unless said, sizes bytes; NA is not known. `answer`:
    the headline, which is the largest loss of a step that is known; `verdict`: SLOW or SUSPECT where a rank or host is,
    whatever costs most, UNEVEN, or "" for none. `missing`: what the captures cannot tell, and the profiler option that
    would.

    - ranks: own_ns: median over the steps of a step without exposed communication, which is what the rank would take
      alone; step: the longer of its marker and of the span of its device. own_ratio: to the median of its peers, which
      are the captured ranks of its stage; excess_ns: own_ns less that median; cost_ns: what a step would save if the
      rank were as fast as the next slowest. slowest_steps: in how many it took longest; q: how often chance makes any
      rank of the job that much longer, where steps follow each other. verdict: of own_ratio >= 1.05 SLOW (q <= 0.01)
      or SUSPECT (q <= 0.05), else NA. cause: data loading, host, copies, slow device or more work;
      place: the operator or range in which a slow host spends its time. partial: 1 where records of the rank are lost
      or cannot be: it is judged by nothing, and nobody by it. device_score: how fast its kernels are,
      1 = as fast as the fastest peer's; late_calls: collectives that it joined last; wait_ns: for others
    - steps: own time of each rank and step; hosts: ranks of a host together, judged alike
    - stages: medians over the ranks; spread: median over steps of the largest own time by the median, UNEVEN from 1.10
      on where no rank is SLOW and the ranks make different calls in a step. bubble_ns: exposed waiting for other
      stages, profiler_bubble_ns: what the profiler calls so; tau_ns: the largest own time by the microbatches
    - pipeline: model_ns = sum of tau + (microbatches - 1) x the largest; even_ns: with stages as fast as their median
      rank; flat_ns: with equal stages; slowdown: model_ns by that of equal ranks (Lin et al., OSDI'25)
    - roles: communication of a rank by parallel type, medians of its steps; groups: by process group and kind, over the
      whole capture, summed over its ranks; transit_ns: of one rank, NA where not all members are captured; bus_gb_per_s
      as in nccl-tests, of all_reduce, broadcast and reduce: of the others it is not known whose bytes a profile counts
    - peers: how long a rank waits in collectives for another one, medians of its steps, which its tasks name (told_by
      tasks; several at once) or which comes last in calls of complete groups (told_by ranks). is_global: 0 where peer
      is a place in a group whose members are not known; captured: 1, 0, or NA where that cannot be told; longest_ns: of
      one call
    - calls: the longest collectives of complete groups: who came last, and by how much
    - links: bandwidth_gb_per_s of bytes by transit time; z: robust, below the links of the same transport
    - operators: over the ranks of a stage: saving_ns = max_ns - median_ns, of the whole capture
    - balance: the largest rank by the mean of its stage
    - changes: of two runs, rank by rank and section by section, where the second run is the candidate
    """

    word: ClassVar[str] = "cluster"
    printed_by: ClassVar[str] = "tracker cluster RUN"
    json_fields: ClassVar[tuple[str, ...]] = ("headline", "run", "baseline", "verdict", "remarks", "missing", "notes")

    run: Mapping[str, Any]
    tables: Mapping[str, Columns]
    answer: str
    verdict: str = ""
    remarks: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    baseline: Mapping[str, Any] | None = None
    options: ClusterOptions = field(default_factory=ClusterOptions)

    ranks, steps, hosts, stages, pipeline, roles, peers, groups, calls, links, operators, balance, changes = frames(13)

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
