"""One run, as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import field

from tracker.results.advice import Advice
from tracker.results.diff import Bottleneck
from tracker.results.options import ShowOptions
from tracker.results.screens import Result, frames
from tracker.units import counted

if TYPE_CHECKING:
    import pandas as pd

    from tracker.columns import Columns


class Shown(Result, frozen=True, eq=False):
    """One run, for `tracker show`: sums over its steps and ranks unless grain columns `stage`, `rank`, `step` stand
    first.

    `run`: the columns of `store.queries.runs` for this run (run_id, workload, version, device, ...); `per_step` in it:
    the numbers of a step by metric, as in `Diff.overall`. Times are int ns, sizes int bytes.

    - overall: one row per rank, the whole capture: rank, duration_ns, timeline (device or host) and the other fields of
      `Breakdown`; steps: the same per rank and step, and the shortest_ns and longest_ns of the steps that a row is the
      mean of, NA where the source does not name them
    - compute_share, exposed_communication_share, exposed_copy_share, idle_share, in overall: parts of the E2E time of
      the rank
    - rank_summary, step_summary: metric (a field of `Breakdown`), unit (ns, bytes, count), rows (how many state it),
      minimum, median, mean, maximum, maximum_rank, and of steps maximum_step: the spread over the rows of overall and
      of steps. share: of the E2E time of all ranks. Of steps that are known as means of several only the mean and, of
      duration_ns, the extremes that the source names
    - share, in ops, kernels, copies and kernel_types: of the time (of ops the self time on the device, without one on
      the host) of all rows of the table, whatever the filters
    - ops: name, input_shapes, input_types, module, phase, calls, host_total_ns, host_self_ns, device_total_ns,
      device_self_ns, min_ns, max_ns (of a call on the device, without one on the host), host_min_ns, host_max_ns,
      sum_squares_ns2, kernel_count, call_stack
    - per_step_ns, in ops, kernels, copies, communication, modules and api: the number of the series of a row (op and
      shapes, canonical kernel and shapes, kind with role and size, module and phase, API call), as `diff` and `history`
      print it; NA for what lies outside all steps
    - kernels: name, canonical_name, type, core_type, input_shapes, category, op, op_input_shapes, calls, total_ns,
      min_ns, max_ns, sum_squares_ns2, wait_ns, bytes; copies: the same columns, the rows with category `copy` and
      `memset`
    - communication: kind, group_role, group_size, data_type, size_class_bytes, calls, bytes, total_ns, min_ns, max_ns,
      transit_ns, wait_ns, synchronization_ns, idle_ns, exposed_ns, exposed_wait_ns, split_by (where transit and
      wait come from: `ranks`, computed from all ranks of the group; `profiler`; NA: unknown)
    - kernel_types: type, core_type, calls, total_ns, min_ns, max_ns of the kernels whose type an NPU's profiler names,
      without collectives
    - memory: op, input_shapes, input_types, component, calls, bytes, held_ns, unreleased_bytes, allocator: the
      innermost op, which made the call (the one of most bytes, NA: not known), more_allocators: how many others
    - memory_peak: rank, component, op, input_shapes, input_types, module, phase, allocator, calls, bytes,
      largest_bytes, first_ns, first_step, peak_ns, peak_step, code_line, call_stack: what was held at the peak of each
      component, one row of which stands for what was allocated before the capture; the rows of a component sum to it.
      share: of that peak
    - memory_peak_totals: rank, component, bytes, peak_ns, peak_step: the peak itself, whatever the filters; NA where
      the bytes of an owner are unknown
    - memory_blocks: rank, step, component, op, input_shapes, input_types, module, phase, allocator, bytes, time_ns,
      held_ns, is_released, code_line, call_stack: the largest single allocations, at most 200 of a rank and component
    - modules: module, phase, calls, host_total_ns, host_self_ns, device_total_ns, device_self_ns. `self`: of the ops of
      the module itself, which adds up; `total`: with those of the modules inside, nested ops counted once, as in `tree`
    - kernel_metrics: name, canonical_name, type, core_type, input_shapes, metric, kind, calls, mean, min, max of
      each kernel, over whole captures; the profiler does not say in which step
    - kernel_pipes: of each of these kernels calls, core_time_ns, and by place the three pipes that worked longest, or
      the three largest ratios where no pipe was measured: kind, metric, mean (in the unit that `metric` names)
    - communication_links: kind, group_role, group_size, data_type, size_class_bytes, transport, source_rank,
      target_rank (NA: all links), packet_bytes (NA: all sizes), calls, packets, bytes, transit_ns, large_packet_ratio,
      bandwidth_gb_per_s, level (transport, link, packet); the same bytes stand in the rows of each level, which come
      one after the other
    - link_totals: the sums over all collectives: of level transport per transport, group_role and group_size, of level
      link per transport, source_rank and target_rank, of level packet per transport and packet_bytes; a sum of which a
      part is unknown is NA. large_packet_ratio: weighted by bytes
    - api: level, name, calls, total_ns, self_ns, min_ns, max_ns
    - counters: source, name, attribute, calls, mean, min, max
    - counter_summary: of each source and attribute min and max over its names (how many), max_name of the largest, and
      the mean where there is one name; without what is always 0 and what other tables are made of
    - memory_curve: rank, component, time_ns (from the first event on), allocated_bytes, reserved_bytes; at most 500
      points of a rank and component, peaks included
    - facts: kind (fact, configuration, tag), key, value; sources: rank, format, path, bytes, digest
    - efficiency, advice: with `options.with_advice`, else empty: as in `Advised`, and the three that could win most
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

    run: Mapping[str, Any]
    tables: Mapping[str, Columns]
    options: ShowOptions = field(default_factory=ShowOptions)
    notes: tuple[str, ...] = ()
    bottleneck: Bottleneck | None = None
    tree_table: Columns | None = None
    is_pruned: bool = False
    advice: tuple[Advice, ...] = ()

    (
        overall, steps, ops, kernels, copies, communication, memory, modules, api, memory_curve, facts, sources,
        kernel_metrics, communication_links, counters, kernel_types, memory_peak, memory_blocks, rank_summary,
        step_summary, kernel_pipes, link_totals, memory_peak_totals, counter_summary, efficiency,
    ) = frames(25)  # fmt: skip

    @property
    def tree(self) -> pd.DataFrame | None:
        """The frame of `tree_table`, as the others are those of `tables`."""
        return None if self.tree_table is None else self.tree_table.frame.copy()

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
