"""The tree of `--by` for speedscope.app: of a run, or of both sides of a diff, as sampled stacks.

A sample is a row with the time that is in none of the rows below it, so that a row is as wide as its time. Medians do
not add up: where the rows below have more time than their row, each of them gives way in proportion.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from tracker.errors import UsageError
from tracker.reports.document import Look
from tracker.reports.rows import rows_of
from tracker.results import Diff, Shown
from tracker.results.diff_rows import TreeChange
from tracker.results.shown_rows import NodeRow, TreeRow
from tracker.units import printable

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.results.screens import Result

TITLE = "a flame graph for speedscope.app, of the tree of --by"
SUFFIX = ".speedscope.json"


def render(result: Result, look: Look) -> str:
    """Return the tree of a run, one profile for each rank and step that are kept apart; of two sides a profile each."""
    return OF[result.word](result)


class _Profile(Struct, frozen=True):
    """A profile of the file: rows of a tree, and the time of each, in whole ns."""

    name: str
    rows: Sequence[NodeRow]
    totals: Sequence[int]


def _write_run(shown: Shown) -> str:
    rows = rows_of(TreeRow, _tree(shown))
    place = "device" if "device" in shown.tables["overall"].listed("timeline") else "host"
    profiles = []
    for (rank, step), tree in groupby(rows, lambda row: (row.rank, row.step)):
        own = list(tree)
        times = [row.device_total_ns if place == "device" else row.host_total_ns for row in own]
        of_rank = f"rank {rank}" if rank is not None else ""
        of_step = f"step {step}" if step is not None else ""
        name = " ".join(filter(None, (of_rank, of_step, f"{place} time")))
        profiles.append(_Profile(name, own, _whole_ns(times)))
    return _file(shown.headline, profiles)


def _write_diff(diff: Diff) -> str:
    """Write both sides of a diff, in ns per step."""
    rows = rows_of(TreeChange, _tree(diff))
    before = _Profile(f"baseline {diff.baseline.label}", rows, _whole_ns([row.baseline_ns for row in rows]))
    after = _Profile(f"candidate {diff.candidate.label}", rows, _whole_ns([row.candidate_ns for row in rows]))
    return _file(diff.headline, [before, after])


def _whole_ns(times: Iterable[float | None]) -> list[int]:
    return [max(0, round(time_ns or 0)) for time_ns in times]


def _tree(result: Shown | Diff) -> Columns:
    if result.tree_table is None:
        raise UsageError("speedscope shows a tree, and there is none", remedy="add one: --by op")
    if not len(result.tree_table):
        raise UsageError(f"the sources state no {result.options.tree}s", remedy="choose --by op")
    return result.tree_table


def _file(title: str, found: Sequence[_Profile]) -> str:
    """Write the file of profiles."""
    frames: dict[str, int] = {}
    profiles = []
    for profile in found:
        samples, weights = [], []
        for path, weight in _samples(profile.rows, profile.totals):
            texts = (" ".join(filter(None, (row.name, row.input_shapes))) for row in path)
            samples.append([frames.setdefault(printable(text), len(frames)) for text in texts])
            weights.append(weight)
        profiles.append({
            "type": "sampled", "name": printable(profile.name), "unit": "nanoseconds", "startValue": 0,
            "endValue": sum(weights), "samples": samples, "weights": weights,
        })  # fmt: skip
    document: dict[str, Any] = {
        "$schema": "https://www.speedscope.app/file-format-schema.json", "name": printable(title),
        "exporter": "tracker", "activeProfileIndex": len(profiles) - 1 if len(profiles) == 2 else 0,
        "shared": {"frames": [{"name": name} for name in frames]}, "profiles": profiles,
    }  # fmt: skip
    return json.dumps(document, ensure_ascii=False) + "\n"


def _samples(rows: Sequence[NodeRow], totals: Sequence[int]) -> Iterator[tuple[list[NodeRow], int]]:
    """Yield the rows down to each row that has time of its own, and that time. `totals`: of each row, in whole ns."""
    below: list[list[int]] = [[] for _ in rows]
    paths: list[list[int]] = []
    for place, row in enumerate(rows):
        paths.append([*(paths[-1][: row.level] if row.level else []), place])
        if row.level:
            below[paths[-1][-2]].append(place)
    given = list(totals)
    for place, children in enumerate(below):  # parents come first
        wanted = sum(given[child] for child in children)
        own = given[place] - wanted
        if own < 0:
            so_far = spent = 0
            for child in children:
                so_far += given[child]
                given[child] = given[place] * so_far // wanted - spent
                spent += given[child]
        if own > 0:
            yield [rows[at] for at in paths[place]], own


OF: Final[Mapping[str, Callable[[Any], str]]] = {"diff": _write_diff, "show": _write_run}
"""Word of a result -> what writes its tree."""
