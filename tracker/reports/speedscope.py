"""The tree of `--by` for speedscope.app: of a run, or of both sides of a diff, as sampled stacks.

A sample is a row with the time that is in none of the rows below it, so that a row is as wide as its time. Medians do
not add up: where the rows below have more time than their row, each of them gives way in proportion.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from tracker.errors import UsageError
from tracker.reports.document import Look
from tracker.reports.rows import Row, records
from tracker.results import GRAINS, Diff, Shown
from tracker.units import printable

if TYPE_CHECKING:
    from tracker.results.screens import Result

TITLE = "a flame graph for speedscope.app, of the tree of --by"
SUFFIX = ".speedscope.json"


def render(result: Result, look: Look) -> str:
    """Return the tree of a run, one profile for each rank and step that are kept apart; of two sides a profile each."""
    return OF[result.word](result)


def _write_run(shown: Shown) -> str:
    rows = _rows(shown)
    place = "device" if "device" in shown.tables["overall"].listed("timeline") else "host"
    trees = [list(tree) for _, tree in groupby(rows, lambda row: [row.get(grain) for grain in GRAINS])]
    names = [" ".join(f"{grain} {tree[0][grain]}" for grain in GRAINS if grain in tree[0]) for tree in trees]
    named = zip(names, trees, strict=True)
    return _file(shown.headline, [(f"{name} {place} time".strip(), tree, f"{place}_total_ns") for name, tree in named])


def _write_diff(diff: Diff) -> str:
    """Write both sides of a diff, in ns per step."""
    rows = _rows(diff)
    sides = (("baseline", diff.baseline), ("candidate", diff.candidate))
    return _file(diff.headline, [(f"{name} {side.label}", rows, f"{name}_ns") for name, side in sides])


def _rows(result: Shown | Diff) -> list[Row]:
    if result.tree_table is None:
        raise UsageError("speedscope shows a tree, and there is none", remedy="add one: --by op")
    if not len(result.tree_table):
        raise UsageError(f"the sources state no {result.options.tree}s", remedy="choose --by op")
    return records(result.tree_table)


def _file(title: str, columns: Sequence[tuple[str, list[Row], str]]) -> str:
    """Write the file of profiles. `columns`: name of a profile, rows, and the column with their time."""
    frames: dict[str, int] = {}
    profiles = []
    for name, rows, column in columns:
        samples, weights = [], []
        for path, weight in _samples(rows, [max(0, round(row[column] or 0)) for row in rows]):
            texts = (" ".join(filter(None, (row["name"], row["input_shapes"]))) for row in path)
            samples.append([frames.setdefault(printable(text), len(frames)) for text in texts])
            weights.append(weight)
        profiles.append({
            "type": "sampled", "name": printable(name), "unit": "nanoseconds", "startValue": 0,
            "endValue": sum(weights), "samples": samples, "weights": weights,
        })  # fmt: skip
    document: dict[str, Any] = {
        "$schema": "https://www.speedscope.app/file-format-schema.json", "name": printable(title),
        "exporter": "tracker", "activeProfileIndex": len(profiles) - 1 if len(profiles) == 2 else 0,
        "shared": {"frames": [{"name": name} for name in frames]}, "profiles": profiles,
    }  # fmt: skip
    return json.dumps(document, ensure_ascii=False) + "\n"


def _samples(rows: Sequence[Row], totals: Sequence[int]) -> Iterator[tuple[list[Row], int]]:
    """Yield the rows down to each row that has time of its own, and that time. `totals`: of each row, in whole ns."""
    below: list[list[int]] = [[] for _ in rows]
    paths: list[list[int]] = []
    for place, row in enumerate(rows):
        paths.append([*(paths[-1][: row["level"]] if row["level"] else []), place])
        if row["level"]:
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
