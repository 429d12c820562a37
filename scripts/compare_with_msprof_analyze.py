"""The breakdown of msprof-analyze and ours of the same Ascend captures, with the reason for each difference.

    .venv/bin/python scripts/compare_with_msprof_analyze.py --pair OLD/rank0_ascend_pt NEW/rank0_ascend_pt
    .venv/bin/python scripts/compare_with_msprof_analyze.py --folder captures   # all pairs

msprof-analyze is no dependency of tracker: it is installed from PyPI into a virtual environment of its own, or found
with --peer-python. A reason is a rule of msprof-analyze that, worked out on our own reading of the files, gives the
number it printed, to the ns. Exit 0: every difference has a reason; 1: one has none; 2: could not compare.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from msprof_analyze_peer import GIB, NS_PER_MS, PEER, RESERVED, Cell, peer_python, printed_gib, run_peer, sheet  # noqa: E402
from msprof_analyze_rules import MC2, OTHER, PARTS, Kernel, Seen, by_cube, our_row, seen_of, without_cores  # noqa: E402

import tracker  # noqa: E402
from tracker import readers  # noqa: E402
from tracker.errors import TrackerError  # noqa: E402
from tracker.results import Diff  # noqa: E402
from tracker.timeline import CATEGORIES  # noqa: E402

SIDES: Final = ("baseline", "candidate")
COMPUTING, UNCOVERED, FREE_TIME, E2E = "Computing Time", "Uncovered Communication Time", "Free Time", "E2E Time"
WAIT, TRANSMIT, SDMA = "Wait", "Transmit", "SDMA"
_FLOAT_NS: Final = 2.0
"""The tool adds up microseconds and milliseconds in doubles."""
_PRINTED_GIB: Final = 0.0051
NO_CLASSES: Final = "kernel_details.csv has neither aiv_vec_time(us) nor mac_time(us): it tells no classes"


@dataclass(frozen=True, slots=True)
class Step:
    """One step from our number to that of the tool: what it counts otherwise, and the number after that."""

    reason: str
    ns: float
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the comparison; `steps` lead from `start` to what the rules say the tool counts.

    `ours`: our diff, None where it does not say; `start`: the same worked out from the events, None where they do not
    tell it. A difference is explained where `start` is `ours` and the last step is the number of the tool.
    """

    title: str
    ours: Cell | None
    peer: Cell
    steps: tuple[Step, ...]
    start: Cell | None = None
    tolerance_ns: float = _FLOAT_NS
    scale: float = NS_PER_MS

    @property
    def is_equal(self) -> bool:
        """True where both say the same."""
        ours = self.ours or Cell(math.nan)
        return abs(self.peer.ns - ours.ns) <= _FLOAT_NS and self.peer.number in (None, ours.number)

    @property
    def is_explained(self) -> bool:
        """True where the rules give the number of the tool, or no rule is needed."""
        if self.is_equal:
            return True
        mine, start = self.ours or Cell(math.nan), self.start or Cell(math.nan)
        is_ours = abs(start.ns - mine.ns) <= _FLOAT_NS and start.number in (None, mine.number)
        if not is_ours and (self.ours or self.start):
            return False
        last = self.steps[-1] if self.steps else Step("", math.nan)
        return abs(last.ns - self.peer.ns) <= self.tolerance_ns and self.peer.number in (None, last.number)


# -- ours


def our_cells(result: Diff, side: str) -> dict[str, Cell]:
    """Our numbers of one side under the titles of the sheet; what the source does not say is left out."""
    steps = getattr(result, side).steps
    overall = result.overall.set_index("metric")[f"{side}_value"].dropna() * steps
    cells = _classes(result, side)
    cells |= {title: _sum(cells, parts) for title, parts in PARTS.items()}
    named = {COMPUTING: "compute_ns", UNCOVERED: "exposed_communication_ns", FREE_TIME: "idle_ns", E2E: "e2e_ns"}
    cells |= {title: Cell(float(overall[metric])) for title, metric in named.items() if metric in overall}
    number = sum(cell.number or 0 for title, cell in cells.items() if title not in PARTS)
    cells[COMPUTING] = Cell(cells[COMPUTING].ns, number)
    cells |= _exposed(result, side)
    copies = result.kernels[result.kernels["category"].isin(["copy", "memset"])]
    cells[SDMA] = Cell(float(copies[f"{side}_ns"].sum()) * steps)
    if "peak_reserved_bytes" in overall:
        cells[RESERVED] = Cell(float(overall["peak_reserved_bytes"]) / steps)
    return cells


def _classes(result: Diff, side: str) -> dict[str, Cell]:
    """The categories of compute, each on cube cores, on vector cores, and where the source does not tell the core."""
    steps = getattr(result, side).steps
    table = result.overall.set_index("metric")
    numbers = table[[f"{side}_value", f"{side}_calls"]].astype("float64").fillna(0.0) * steps
    cells: dict[str, Cell] = {}
    for category in CATEGORIES:
        whole, *parts = (
            numbers.loc[name].tolist() if name in numbers.index else [0.0, 0.0]
            for name in (category, f"{category}:cube", f"{category}:vector")
        )
        rest = [all_of_it - cube - vector for all_of_it, cube, vector in zip(whole, *parts, strict=True)]
        for core, (ns, calls) in zip(("AI_CORE", "AI_VECTOR_CORE", ""), (*parts, rest), strict=True):
            title = our_row(category, core)
            if title is not None and round(calls):
                known = cells.get(title, Cell(0.0, 0))
                cells[title] = Cell(known.ns + ns, (known.number or 0) + round(calls))
    return cells


def _exposed(result: Diff, side: str) -> dict[str, Cell]:
    """Exposed time of the collectives, told apart; empty where the source does not tell all of it."""
    rows = result.communication.dropna(subset=[f"{side}_ns"])
    steps = getattr(result, side).steps
    waits, exposed = (rows[f"{side}_{name}"] for name in ("exposed_wait_ns", "exposed_ns"))
    if waits.isna().any() or exposed.isna().any():
        return {}
    waited = float(waits.sum()) * steps
    return {WAIT: Cell(waited), TRANSMIT: Cell(float(exposed.sum()) * steps - waited)}


def _sum(cells: Mapping[str, Cell], titles: Iterable[str]) -> Cell:
    parts = [cells[title] for title in titles if title in cells]
    return Cell(sum(part.ns for part in parts), sum(part.number or 0 for part in parts))


# -- the reasons


def compared(ours: Mapping[str, Cell], peer: Mapping[str, Cell], seen: Seen) -> list[Row]:
    """One side of the comparison, in the order of the sheet; rows that both leave out are left out."""
    rows = [_computing(ours, peer, seen)]
    titles = dict.fromkeys(kernel_row for kernel in seen.kernels for kernel_row in (kernel.ours, kernel.peer))
    singles = [title for title in titles if title and title not in (OTHER, MC2)]
    for title in sorted({*singles, *PARTS, MC2} & ({*ours} | {*peer} | {*singles})):
        rows.append(_class(title, ours, peer, seen))
    rows += [_other(ours, peer, seen), _uncovered(ours, peer, seen)]
    rows += _waiting(ours, peer, seen)
    rows += _idle(ours, peer, seen)
    return [row for row in rows if row.peer.ns or (row.ours and row.ours.ns)]


def _cell(cells: Mapping[str, Cell], title: str) -> Cell:
    return cells.get(title, Cell(0.0, 0))


def _totalled(title: str, ours: Cell, whole_ns: int, seen: Seen) -> list[Step]:
    """The steps of a total: from the steps to the whole capture, and from spans to sums of slices that are rounded."""
    said = seen.totals.compute_ns if title == COMPUTING else seen.totals.uncovered_ns
    steps = []
    if ours.ns != whole_ns:
        steps.append(Step("the whole capture, here the steps", whole_ns, ours.number))
    if said != whole_ns and abs(said - whole_ns) <= seen.totals.slices:
        reason = f"the sum of slices of Overlap Analysis ({seen.totals.slices} in all), each rounded to a ns"
        steps.append(Step(reason, said, ours.number))
    return steps


def _computing(ours: Mapping[str, Cell], peer: Mapping[str, Cell], seen: Seen) -> Row:
    mine, theirs = ours[COMPUTING], peer[COMPUTING]
    steps = _totalled(COMPUTING, mine, seen.compute_ns, seen)
    at = steps[-1].ns if steps else mine.ns
    skipped = [kernel for kernel in seen.kernels if kernel.peer is None]
    outside = sum(not kernel.in_step for kernel in seen.kernels)
    number = len(seen.kernels)
    if outside:
        steps.append(Step(f"{outside} kernels outside of all steps count too", at, number))
    if not seen.has_measurements:
        steps.append(Step(NO_CLASSES, at, 0))
    elif skipped:
        steps.append(Step(f"{len(skipped)} kernels are in no class: {skipped[0].cause}", at, number - len(skipped)))
    return Row(COMPUTING, mine, theirs, tuple(steps), Cell(seen.steps.compute_ns))


def _class(title: str, ours: Mapping[str, Cell], peer: Mapping[str, Cell], seen: Seen) -> Row:
    rows = PARTS.get(title, (title,))
    at = start = Cell(*_total(kernel for kernel in seen.kernels if kernel.ours in rows and kernel.in_step))
    steps = []
    outside = [kernel for kernel in seen.kernels if kernel.ours in rows and not kernel.in_step]
    if outside:
        at = _moved(at, outside, +1)
        steps.append(Step("kernels outside of all steps count too", at.ns, at.number))
    if not seen.has_measurements:
        steps.append(Step(NO_CLASSES, 0.0, 0))
        return Row(title, _cell(ours, title), _cell(peer, title), tuple(steps), start)
    for sign, moved in _moves(seen.kernels, rows):
        at = _moved(at, moved, sign)
        here = f"{title} here" if sign < 0 else f"{moved[0].ours} here"
        there = (moved[0].peer or "left out") if sign < 0 else title
        what = f"{len(moved)} x {moved[0].name}" if len({k.name for k in moved}) == 1 else f"{len(moved)} kernels"
        steps.append(Step(f"{what}, {there} there, {here}: {moved[0].cause}", at.ns, at.number))
    return Row(title, _cell(ours, title), _cell(peer, title), tuple(steps), start)


def _moves(kernels: Sequence[Kernel], rows: Sequence[str]) -> Iterator[tuple[int, list[Kernel]]]:
    """Kernels that only one of both counts in `rows`, by cause and the row on the other side."""
    found: dict[tuple[int, str, str | None, str | None], list[Kernel]] = {}
    for kernel in kernels:
        sign = (kernel.peer in rows) - (kernel.ours in rows)
        if sign:
            found.setdefault((sign, kernel.cause, kernel.ours, kernel.peer), []).append(kernel)
    yield from ((key[0], moved) for key, moved in found.items())


def _total(kernels: Iterable[Kernel]) -> tuple[float, int]:
    times = [kernel.ns for kernel in kernels]
    return float(sum(times)), len(times)


def _moved(at: Cell, kernels: Sequence[Kernel], sign: int) -> Cell:
    ns, number = _total(kernels)
    return Cell(at.ns + sign * ns, (at.number or 0) + sign * number)


def _other(ours: Mapping[str, Cell], peer: Mapping[str, Cell], seen: Seen) -> Row:
    named = sum(kernel.ns for kernel in seen.kernels if kernel.peer is not None and seen.has_measurements)
    left = max(0.0, peer[COMPUTING].ns - named)
    reason = "what is left of its computing: kernels in no class, less the time in which streams overlap"
    start = Cell(*_total(kernel for kernel in seen.kernels if kernel.ours == OTHER and kernel.in_step))
    return Row(OTHER, _cell(ours, OTHER), Cell(_cell(peer, OTHER).ns), (Step(reason, left),), start)


def _uncovered(ours: Mapping[str, Cell], peer: Mapping[str, Cell], seen: Seen) -> Row:
    mine, theirs = Cell(_cell(ours, UNCOVERED).ns), Cell(_cell(peer, UNCOVERED).ns)
    steps = tuple(_totalled(UNCOVERED, mine, seen.uncovered_ns, seen))
    return Row(UNCOVERED, mine, theirs, steps, Cell(seen.steps.uncovered_ns))


def _waiting(ours: Mapping[str, Cell], peer: Mapping[str, Cell], seen: Seen) -> Iterator[Row]:
    """Wait and transmit: over all groups, then group by group where there are several."""
    plane = "all planes, also those without a wait" if not seen.is_database else "the planes with a wait"
    rule = f"Notify_Wait of the plane that waits least, of {plane}, and only while nothing computes"
    here = "here of every call the waits of its first plane with any, or what the profiler says of it"
    for title, part in ((WAIT, "wait_ns"), (TRANSMIT, "transmit_ns")):
        own = getattr(seen.steps, part)
        start = None if own is None else Cell(own)
        said = sum(float(getattr(group, part)) for group in seen.groups.values())
        theirs = sum(cell.ns for name, cell in peer.items() if name.endswith(f": {title}"))
        rest = "" if title == WAIT else "uncovered time without its waits; its waits: "
        step = Step(f"{rest}{rule}; {here}", said)
        yield Row(title, ours.get(title), Cell(theirs), (step,), start, _FLOAT_NS + seen.totals.slices)


def _idle(ours: Mapping[str, Cell], peer: Mapping[str, Cell], seen: Seen) -> Iterator[Row]:
    """SDMA, Free Time, E2E and memory."""
    sdma, e2e = _cell(peer, SDMA), _cell(peer, E2E)
    rule = "only tasks of type SDMA_SQE and PCIE_DMA_SQE on streams that compute and wait for events"
    no_stream = "" if seen.is_database else ", and none whose stream the trace calls `Physic Stream Id`"
    here = "here every copy and memset outside of collectives"
    reason, copies = f"{rule}{no_stream}; {here}", Cell(seen.steps.copy_ns)
    yield Row(SDMA, _cell(ours, SDMA), Cell(sdma.ns), (Step(reason, seen.totals.sdma_ns),), copies)
    mine, steps = _cell(ours, FREE_TIME), []
    at = mine.ns
    for reason, change in (
        ("the whole capture, here the steps", _whole_free(seen) - at),
        ("copies that nothing hides are a class of their own here", seen.exposed_copy_ns),
        ("its E2E is another (below)", seen.totals.e2e_ns - seen.our_e2e_ns),
    ):
        if change:
            at += change
            steps.append(Step(reason, at))
    tolerance = _FLOAT_NS + seen.totals.slices
    start = Cell(seen.steps.idle_ns)
    yield Row(FREE_TIME, Cell(mine.ns), Cell(_cell(peer, FREE_TIME).ns), tuple(steps), start, tolerance)
    tasks = "every task but kernels counts, also waits and records" if seen.is_database else (
        "from the first to the last kernel or collective; here copies before and after count too"
    )  # fmt: skip
    whole = [Step("the whole capture, here the steps", seen.our_e2e_ns)] if ours[E2E].ns != seen.our_e2e_ns else []
    yield Row(E2E, ours[E2E], Cell(e2e.ns), (*whole, Step(tasks, seen.totals.e2e_ns)), Cell(seen.steps.e2e_ns))
    if RESERVED in peer and seen.reserved_bytes is not None:
        step = Step("the largest Total Reserved of any component (APP too); here the framework's", seen.reserved_bytes)
        own = None if seen.our_reserved_bytes is None else Cell(seen.our_reserved_bytes)
        yield Row(RESERVED, ours.get(RESERVED), peer[RESERVED], (step,), own, _PRINTED_GIB * GIB, float(GIB))


def _whole_free(seen: Seen) -> float:
    return seen.our_e2e_ns - seen.compute_ns - seen.uncovered_ns - seen.exposed_copy_ns


# -- together


def compare(python: Path, baseline: Path, candidate: Path) -> dict[str, list[Row]]:
    """Both breakdowns of both sides. Raises TrackerError for captures that cannot be compared."""
    seen = [seen_of(path) for path in (baseline, candidate)]
    rows, text = run_peer(python, baseline, candidate)
    result = tracker.diff(baseline, candidate)
    reserved = printed_gib(text)
    found = {}
    for place, side in enumerate(SIDES):
        peer = sheet(rows)[place]
        if len(reserved) == len(SIDES):
            peer[RESERVED] = Cell(reserved[place] * GIB)
        cells, capture = our_cells(result, side), seen[place]
        capture = replace(capture, kernels=told_as(cells, capture.kernels))
        found[side] = compared(cells, peer, capture)
    return found


def told_as(cells: Mapping[str, Cell], kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """The kernels as our diff tells cube from vector work: by the kind of core, by what the cube did, or not at all."""
    titles = [title for title in cells if title.endswith("(Cube)")]
    if not titles:
        return tuple(without_cores(kernels))
    sums = {title: _total(kernel for kernel in kernels if kernel.ours == title and kernel.in_step) for title in titles}
    by_core = all(abs(sums[title][0] - cells[title].ns) <= _FLOAT_NS for title in titles)
    return kernels if by_core else by_cube(kernels)


def lines_of(rows: Sequence[Row]) -> Iterator[str]:
    """The comparison of one side as text: ms, memory in GiB; below a row that differs the steps that lead to it."""
    yield f"  {'':32} {'msprof-analyze':>18} {'tracker':>18} {'difference':>14}"
    for row in rows:
        ours = row.ours
        difference = "-" if ours is None else f"{(row.peer.ns - ours.ns) / row.scale:+,.6f}"
        mark = "" if row.is_explained else "  UNEXPLAINED"
        yield f"  {row.title:32} {_shown(row.peer, row):>18} {_shown(ours, row):>18} {difference:>14}{mark}"
        for step in () if row.is_equal else row.steps:
            number = "" if step.number is None or row.peer.number is None else f" ({step.number})"
            yield f"      -> {step.ns / row.scale:,.6f}{number}: {step.reason}"


def _shown(cell: Cell | None, row: Row) -> str:
    if cell is None:
        return "-"
    number = "" if cell.number is None or row.peer.number is None else f" ({cell.number})"
    return f"{cell.ns / row.scale:,.6f}{number}"


def pairs_in(folder: Path) -> list[tuple[Path, Path]]:
    """Captures below `folder` whose paths differ in one part, the lowest rank of each place, in order of path."""
    found = [
        one.path for one in readers.find(folder) if one.format in ("ascend_text", "ascend_db") and one.path.is_dir()
    ]
    firsts: dict[Path, Path] = {}
    for path in sorted(found):
        firsts.setdefault(path.parent, path)
    parts = [(path, path.relative_to(folder).parts) for path in firsts.values()]
    return [
        (one, other)
        for place, (one, names) in enumerate(parts)
        for other, more in parts[place + 1 :]
        if len(names) == len(more) and sum(a != b for a, b in zip(names, more, strict=True)) == 1
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares every pair; 0 explained, 1 not all, 2 could not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pair", nargs=2, type=Path, action="append", default=[], metavar=("BASELINE", "CANDIDATE"))
    parser.add_argument("--folder", type=Path, help="compare the captures below it whose paths differ in one part")
    parser.add_argument("--peer-python", type=Path, help=f"a Python that has {PEER}; default: one of its own")
    given = parser.parse_args(arguments)
    try:
        pairs = [tuple(pair) for pair in given.pair] + (pairs_in(given.folder) if given.folder else [])
        if not pairs:
            parser.error("give --pair or --folder with captures that can be compared")
        python = peer_python(given.peer_python)
        return max(report(python, baseline, candidate) for baseline, candidate in pairs)
    except (TrackerError, RuntimeError, OSError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 2


def report(python: Path, baseline: Path, candidate: Path) -> int:
    """Prints the comparison of one pair; 1 where a difference has no reason."""
    found = compare(python, baseline, candidate)
    for side, path in zip(SIDES, (baseline, candidate), strict=True):
        print(f"{side} {path}")
        print("\n".join(lines_of(found[side])))
    rows = [row for side in SIDES for row in found[side]]
    unexplained = sum(not row.is_explained for row in rows)
    equal = sum(row.is_equal for row in rows)
    print(
        f"{len(rows)} numbers: {equal} equal, {len(rows) - equal - unexplained} explained, {unexplained} UNEXPLAINED\n"
    )
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main())
