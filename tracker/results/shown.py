"""One run, as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import field

from tracker.results.advice import Advice
from tracker.results.chosen_tables import choose_sections, choose_tables
from tracker.results.diff import Bottleneck
from tracker.results.options import ShowOptions
from tracker.results.partial import Partial
from tracker.results.screens import Result, Rows, frames
from tracker.results.slow_steps import SlowStep
from tracker.units import counted

if TYPE_CHECKING:
    import pandas as pd

    from tracker.columns import Columns

__all__ = ["Shown"]


class Shown(Result, frozen=True, eq=False):
    """One run, for `tracker show`: sums over its steps and ranks unless grain columns `stage`, `rank`, `step` stand
    first.

    `run`: the columns of `store.queries.runs` for this run (run_id, workload, version, device, ...); `per_step` in it:
    the numbers of a step by metric, as in `Diff.overall`. Times are int ns, sizes int bytes. docs/json.md lists the
    columns of each table, docs/columns.md says what those of the database mean, `Diff` what both have.

    - overall: one row per rank, the whole capture, with the fields of `Breakdown`, and the parts of the E2E time of the
      rank as `*_share`; steps: the same per rank and step, and the shortest_ns and longest_ns of the steps that a row
      is the mean of, NA where the source does not name them
    - rank_summary, step_summary, kernel_pipes, counter_summary, input_operations, input_queues, operator_arguments:
      what their columns mean stands with their rows: `RankSummaryRow`, ...; counter_summary is without what is always 0
      and what other tables are made of
    - share, in largest, ops, kernels, copies and kernel_types: of the time (of ops the self time on the device, without
      one on the host) of all rows of the table, whatever the filters
    - largest: the names of operators (kind `operator`), or of kernels (kind `kernel`) where no operator is known, all
      shapes together: calls and total_ns of the whole capture; per_step_ns and calls_per_step
    - per_step_ns, in largest, ops, kernels, copies, communication, modules, api and idle: the number of a row (op and
      shapes, canonical kernel and shapes, kind with role and size, module and phase, API call), as `diff` and `history`
      print it; NA for what lies outside all steps
    - ops: min_ns, max_ns of a call on the device, without one on the host
    - copies: the kernels with category `copy` and `memset`
    - memory_peak: what was held at the peak of each component, as in `Diff`; share: of that peak; memory_peak_totals:
      the peak itself, whatever the filters, NA where the bytes of an owner are unknown
    - memory_blocks: the largest single allocations, at most 200 of a rank and component
    - modules: `self`: of the ops of the module itself, which adds up; `total`: with those of the modules inside, nested
      ops counted once, as in `tree`
    - kernel_metrics: of each kernel, over whole captures, for rows have no step; of PyTorch traces of CUDA the
      occupancy in %, blocks and warps per SM of a launch
    - communication_links: the same bytes stand in the rows of each level (transport, link, packet), which come one
      after the other; target_rank NA: all links, packet_bytes NA: all sizes
    - link_totals: the sums over all collectives: of level transport per transport, group_role and group_size, of level
      link per transport, source_rank and target_rank, of level packet per transport and packet_bytes; a sum of which a
      part is unknown is NA. large_packet_ratio: weighted by bytes
    - idle: why the device did nothing: ns of each cause and place, which add up to the idle time of the steps; gaps: of
      its work, which have a part in the row, NA where the source states idle time alone; share: of all idle time.
      idle_causes: all places of a cause together, whatever the filters; steps: how many have it. queues: per stream the
      kernels with a known launch, mean_lead_ns and max_lead_ns from the end of the launch call (on Ascend its start)
      to the start of the kernel, and queued_share, of the kernels that were launched before the event ahead of them on
      the stream ended: near 1 the device is never short of work, near 0 it waits for each launch
    - memory_curve: time_ns from the first event on; at most 500 points of a rank and component, peaks included
    - facts: kind is fact, configuration or tag
    - efficiency, advice: with `options.with_advice`, else empty: as in `Advised`, and the three that could win most
    - partial: what the checks of its captures found, and what of them is not judged
    - against: how the step of its version compares with the level before, and why, in a clause; "" where nothing of it
      is open, and no further run would decide it
    - slow_steps: steps of more than 1.2 times the median of their rank, which medians leave out, the slowest first
    - is_pruned: whether the details of the run were dropped, so that only totals are left
    - options: what was chosen; with `steps`, overall sums them up and notes say what is left out
    - tree: what `options.by` asks for, None without; the rows of NODE, the most expensive first. `calls`: of an op or
      kernel; of a module or phase those that the source counts (module frames, which are forward calls; ranges and
      layers that are modules), NA where it does not; `op_calls`: of all ops below. Under modules, phases and kernels
      an op stands with its self time, and a row is the sum of all ops below it (`total`) or of those that are in none
      of the modules below (`self`), so the rows of level 0 sum to the time of all ops. In a tree of ops an op stands
      where it was called, with the time of its calls. `share`: of the time of level 0, on the device or, without one,
      on the host; `step_share`: of the time of the steps
    """

    word: ClassVar[str] = "show"
    printed_by: ClassVar[str] = "tracker show RUN"

    run: Mapping[str, Any]
    tables: Mapping[str, Columns]
    options: ShowOptions = field(default_factory=ShowOptions)
    notes: tuple[str, ...] = ()
    bottleneck: Bottleneck | None = None
    partial: Partial = Partial()
    tree_table: Columns | None = None
    is_pruned: bool = False
    advice: tuple[Advice, ...] = ()
    slow_steps: tuple[SlowStep, ...] = ()
    against: str = ""

    (
        overall, steps, ops, kernels, copies, communication, memory, modules, api, memory_curve, facts, sources,
        kernel_metrics, communication_links, counters, kernel_types, memory_peak, memory_blocks, rank_summary,
        step_summary, kernel_pipes, link_totals, memory_peak_totals, counter_summary, efficiency, idle,
        idle_causes, queues, largest, input_operations, input_queues, operator_arguments,
    ) = frames(32)  # fmt: skip

    @property
    def tree(self) -> pd.DataFrame | None:
        """The frame of `tree_table`, as the others are those of `tables`."""
        return None if self.tree_table is None else self.tree_table.frame.copy()

    def chosen_sections(self, only: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the sections to show, in reading order; see `choose_sections`."""
        return choose_sections(only, has_tree=self.tree_table is not None)

    def chosen_tables(self, only: Sequence[str] = (), limit: int | None = None) -> dict[str, Rows]:
        """Return the tree, cut on each level, and the tables of the chosen sections."""
        return choose_tables(self.tables, self.tree_table, self.chosen_sections(only), limit)

    @property
    def headline(self) -> str:
        """The run, its version, workload and device, and how many ranks it has."""
        run = self.run
        name = (
            f"run:{run['run_id']}"
            if run.get("run_id")
            else ", ".join(dict.fromkeys(self.tables["sources"].listed("path")))
        )
        words = [name, run.get("version"), run.get("workload"), run.get("device")]
        return f"{' '.join(str(word) for word in words if word)}: {counted(len(self.tables['overall']), 'rank')}"
