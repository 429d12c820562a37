"""Two sides that were recorded differently: what of them is comparable, and what to record to compare the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import Columns, objects
from tracker.compare import knowing
from tracker.profile import NOT_LISTED, NOT_LISTED_COLLECTIVES
from tracker.results import ADDED, BOTH, REMOVED, UNMATCHED
from tracker.results.recording import (
    ALLOCATIONS,
    API_NAMES,
    DEVICE_WINDOWS,
    MODULES,
    NAMES,
    RATE,
    SHAPES_IN_KEY,
    Difference,
    Recording,
    differences,
    disturbing,
    has_shapes,
    remedies,
    rests_on,
)
from tracker.store import queries
from tracker.table import number_distinct_rows

if TYPE_CHECKING:
    from tracker.compare.operators import Operators
    from tracker.compare.sides import Loaded
    from tracker.results import DiffOptions

_KEYED_BY: Final = {
    "ops": {NAMES}, "op_details": {NAMES}, "kernels": {NAMES}, "kernel_types": {NAMES}, "communication": {NAMES},
    "communication_details": {NAMES}, "communication_links": {NAMES}, "memory": {NAMES, ALLOCATIONS},
    "memory_details": {NAMES, ALLOCATIONS}, "memory_peak": {NAMES, ALLOCATIONS}, "memory_blocks": {NAMES, ALLOCATIONS},
    "modules": {NAMES, MODULES}, "api": {API_NAMES}, "tree": {NAMES, MODULES},
}  # fmt: skip
"""Table of a Diff -> what the keys of its rows rest on."""
_RESTS: Final = frozenset({NOT_LISTED, NOT_LISTED_COLLECTIVES})
_OF_OPS: Final = frozenset({"ops", "op_details", "tree", "modules"})
_OF_KERNELS: Final = frozenset({"kernels", "kernel_types", "op_details", "communication", "communication_details"})
"""Tables of a Diff whose rows come from the ops, and from the kernels, of a source."""
_WORDS: Final = {"ops": "operators", "kernels": "kernels", "api": "host API calls", "modules": "modules"}


class Recorded(Struct, frozen=True):
    """How two sides differ in how they were recorded. `by_name`: operators are matched by name for that alone.

    `timeline`: on which the candidate was timed. `is_subject`: the sides ran on other devices, so that what exists on
    one of them only is what the comparison is about. `cut`: per side the tables of which its source lists only a part.
    """

    found: tuple[Difference, ...]
    by_name: bool
    timeline: str
    is_subject: bool
    labels: tuple[str, str]
    cut: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())

    def of(self, kind: str, metric: str) -> tuple[Difference, ...]:
        """The differences that make a series of this kind incomparable."""
        return disturbing(self.found, rests_on(kind, metric, self.timeline))

    def why_not(self, kind: str, metric: str) -> str:
        """The reason why series of a kind have no verdict; "" where they may."""
        return "; ".join(one.sentence for one in self.of(kind, metric))

    @property
    def of_everything(self) -> tuple[Difference, ...]:
        """The differences that leave nothing to compare."""
        return disturbing(self.found, frozenset({RATE}))

    def marked(self, name: str, table: Columns) -> Columns:
        """The rows `name` of a Diff, those of one side UNMATCHED where the recordings may be the cause, or where the
        other side does not list all that it has.
        """
        if "status" not in table.arrays:
            return table
        unlike = not self.is_subject and self._disturbs(name)
        doubtful = {word for word, cut in zip((ADDED, REMOVED), self.cut, strict=True) if unlike or name in cut}
        if not doubtful:
            return table
        names = table.listed("name") if "name" in table.arrays else [""] * len(table)
        texts = [
            UNMATCHED if word in doubtful or (word != BOTH and text in _RESTS) else word
            for word, text in zip(table.listed("status"), names, strict=True)
        ]
        return table.having(status=objects(texts))

    def operators(self, found: Operators) -> Operators:
        """Operators, those of one side UNMATCHED where the recordings may be the cause."""
        return replace(
            found,
            ops=self.marked("ops", found.ops),
            everything=self.marked("ops", found.everything),
            details=self.marked("op_details", found.details),
        )

    def tree(self, table: Columns | None) -> Columns | None:
        """The same of the rows of a tree."""
        return None if table is None else self.marked("tree", table)

    def _disturbs(self, name: str) -> bool:
        words = _KEYED_BY.get(name)
        return words is not None and bool(disturbing(self.found, frozenset(words)))

    def notes(self) -> list[str]:
        """Sentences: how the operators are matched and why, what is not judged, and what to record."""
        notes = []
        if self.by_name:
            label = self._without_shapes()
            notes.append(
                f"{label} was recorded without shapes: operators are matched by name. Record with record_shapes=True "
                "to compare them per shape."
            )
        others = [one for one in self.found if not (self.by_name and one.aspect.field == "shapes")]
        if others and not self.is_subject:
            what = "; ".join(one.sentence for one in others)
            tables = [words for name, words in _WORDS.items() if self._disturbs(name)]
            alone = (
                f" {', '.join(tables).capitalize()} of one side only are UNMATCHED, not ADDED or REMOVED."
                if tables
                else ""
            )
            notes.append(f"Recorded differently: {what}.{alone} {remedies(others)}")
        for label, cut, other in zip(self.labels, self.cut, reversed(self.labels), strict=True):
            if cut:
                what = " and ".join(words for name, words in _WORDS.items() if name in cut)
                word = "ADDED" if label == self.labels[0] else "REMOVED"
                notes.append(
                    f"The source of {label} lists only a part of its {what}: what only {other} has is UNMATCHED, not "
                    f"{word}."
                )
        return notes

    def _without_shapes(self) -> str:
        one = next(one for one in self.found if one.aspect.field == "shapes")
        return self.labels[0] if one.baseline == "off" else self.labels[1]


def compared(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> tuple[Recorded, DiffOptions]:
    """How the sides differ in how they were recorded, and the options that this leaves: with shapes on one side only,
    operators are matched by name.
    """
    sides = (baseline, candidate)
    found = differences(*map(_recordings, sides))
    lacks_shapes = any(SHAPES_IN_KEY in one.aspect.disturbs and one.aspect.field == "shapes" for one in found)
    by_name = lacks_shapes and options.match != "name"
    recorded = Recorded(
        found,
        by_name,
        candidate.side.timeline,
        baseline.side.device != candidate.side.device,
        (baseline.side.label, candidate.side.label),
        (_cut(baseline), _cut(candidate)),
    )
    return recorded, replace(options, match="name") if by_name else options


def _cut(side: Loaded) -> frozenset[str]:
    """The tables of a Diff of which the source of a side lists only a part: tables in texts that were shortened."""
    settings = dict.fromkeys(side.captures.listed("settings"))
    if not any(queries.settings_of(text).get("profiler") == "summary" for text in settings):
        return frozenset()
    asked = ((queries.ops, _OF_OPS), (queries.kernels, _OF_KERNELS))
    found = [tables for question, tables in asked if _RESTS & {*side.ask(question).listed("name")}]
    return frozenset().union(*found)


def _recordings(side: Loaded) -> Sequence[Recording]:
    """The distinct recordings of the runs of a side."""
    ops = side.ask(queries.ops)
    number, _ = number_distinct_rows([ops["name"], ops["input_shapes"]])
    shaped, placed = ops["input_shapes"] != "", ops["module"] != ""
    of_run = ops.integers("run_id")
    with_memory = {run_id for run_id, has in side.filled().rows("run_id", knowing.MEMORY) if has}
    said = side.about(queries.recordings)
    found = []
    for run_id, one in queries.recorded_of(said.rows(*said.arrays), side.run_ids).items():
        own = of_run == run_id
        every, with_shapes = (int(np.count_nonzero(np.bincount(number[chosen]))) for chosen in (own, own & shaped))
        found.append(
            one.with_rows(
                shapes=has_shapes(with_shapes, every),
                memory=run_id in with_memory,
                modules=bool((own & placed).any()),
            )
        )
    if any(one.windows == DEVICE_WINDOWS for one in found):
        # the steps of its other runs are left out (step_rules), so that they say nothing of how steps were cut
        found = [replace(one, windows=DEVICE_WINDOWS) for one in found]
    return list(dict.fromkeys(found))
