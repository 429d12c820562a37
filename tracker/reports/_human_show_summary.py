"""The one line that sums up a run, and the command with all its details."""

from __future__ import annotations

from tracker.profile import NOT_LISTED, NOT_LISTED_COLLECTIVES
from tracker.reports._human import READABLE, cell, readable
from tracker.reports._human_show import BREAKDOWN, OF_E2E, mean_share, self_time, summed
from tracker.reports.shared import asked, command_of, records
from tracker.results import Shown
from tracker.units import counted, format_numbers, steps_words


def summary(shown: Shown) -> str:
    """One line: how long a step takes, where its time goes, and the op and kernel with the most of it."""
    run, ranks = shown.run, records(shown.overall)
    name = f"run {run.get('run_id')}"
    words = [name if run.get("step_ns") is None else f"{name}: {cell(run['step_ns'], 'ns')} per step"]
    shares = [f"{label.strip()} {mean_share(ranks, name)}" for name, label, _ in BREAKDOWN if name in OF_E2E]
    known = [text for text in shares if text.endswith("%") and not text.endswith(" 0.0 %")]
    mean = f" (mean of {counted(len(ranks), 'rank')})" if len(ranks) > 1 else ""
    chosen = shown.options.steps
    whole = f"{steps_words(chosen)}{' together' if len(chosen) > 1 else ''}" if chosen else "whole capture"
    e2e = f"E2E {cell(_mean_e2e(shown), 'ns')}{mean}"
    words.append(f"{whole}: {', '.join([e2e, *known])}")
    if slowest := _slowest(shown):
        where = "all steps" if not chosen else "these steps" if len(chosen) > 1 else "it"
        words.append(f"{slowest} in {where}{' and all ranks' if len(ranks) > 1 else ''}")
    return "; ".join(words) + "."


def _mean_e2e(shown: Shown) -> float | None:
    """E2E of the capture, of chosen steps their sum, the mean over the ranks."""
    if not shown.options.steps:
        return shown.run.get("e2e_ns")
    known = [row["e2e_ns"] for row in records(shown.overall) if row.get("e2e_ns") is not None]
    return sum(known) / len(known) if known else None


def _slowest(shown: Shown) -> str:
    """The op with the most time, in words; without ops that are known the kernel; "" for neither."""
    if not len(shown.ops):
        return ""
    metric = self_time(shown)
    rows = [row for row in records(summed(shown, "name")) if row[metric] is not None]
    if not rows:
        return ""
    # an op that somebody wrote says more than a stand-in for missing ones
    first = next((row for row in rows if row["name"] not in READABLE and row[metric]), rows[0])
    kernel = _largest_kernel(shown) if first["name"] in READABLE else ""
    word = metric.split("_", maxsplit=1)[0]
    if not kernel and not first[metric]:
        return f"no operator has {word} self time"
    return kernel or f"most {word} self time in {readable(first['name'])}: {cell(first[metric], 'ns')}"


def _largest_kernel(shown: Shown) -> str:
    """The kernel with the most time over all its shapes, where no op says what launched it."""
    names = shown.kernels["canonical_name"].where(shown.kernels["canonical_name"] != "", shown.kernels["name"])
    sums = shown.kernels["total_ns"].groupby(names).sum(min_count=1).dropna()
    sums = sums[(sums > 0) & ~sums.index.isin((NOT_LISTED, NOT_LISTED_COLLECTIVES))]
    if sums.empty:
        return ""
    return f"most time in the kernel {sums.idxmax()}: {cell(int(sums.max()), 'ns')}"


def hint(shown: Shown) -> str:
    """The command that gives all details."""
    run_id = shown.run.get("run_id")
    reference = str(shown.run.get("reference") or f"run:{run_id}")
    chosen = shown.options
    words = asked(
        chosen,
        ("--step", format_numbers(chosen.steps) or None),
        *(("--by", name) for name in chosen.by if chosen.tree),
        ("--depth", chosen.depth),
    )
    words += ["--format", "xlsx", "-o", f"run{run_id}.xlsx"]
    return f"Details: {command_of(('tracker', 'show'), [reference], words)}"
