"""What of two sides is comparable: where they were recorded differently, and why they are not judged at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import Columns, objects
from tracker.compare import coverage, match
from tracker.compare.models import describe_other_model
from tracker.compare.operators import Operators, own_time
from tracker.compare.other_work import OtherWork, find_other_work
from tracker.compare.references import FILES, needs_store, short_names
from tracker.compare.sections import MATCHED_TABLES
from tracker.compare.step_kinds import say_none_shared
from tracker.detect import DEFAULTS
from tracker.profile import NOT_LISTED, NOT_LISTED_COLLECTIVES
from tracker.profile.branches import main_of
from tracker.results import ADDED, BOTH, REMOVED, UNMATCHED
from tracker.results.recording import (
    DEVICE_WINDOWS,
    Difference,
    Recording,
    are_guesses,
    differences,
    disturbing,
    has_shapes,
    remedies,
    rests_on,
)
from tracker.results.verdicts import GUESS, INCOMPARABLE, NEVER_JUDGED, RANKS, SETTINGS, TOO_FEW
from tracker.schema.column_names import (
    BASELINE_NS,
    CANDIDATE_NS,
    DIGEST,
    INPUT_SHAPES,
    KEY,
    KIND,
    MODULE,
    NAME,
    OWN_NS,
    RANKS_AWAITED,
    RUN_ID,
    STATUS,
    VALUE,
)
from tracker.schema.column_names import RANKS as RANKS_COLUMN
from tracker.schema.column_names import SETTINGS as SETTINGS_COLUMN
from tracker.schema.series import ALLOCATIONS, MODULE_NAMES, NAMES, RATE, SHAPES_IN_KEY
from tracker.store import queries
from tracker.table import number_distinct_rows, number_tables
from tracker.units import counted, format_numbers

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide
    from tracker.results import DiffOptions


_KEYED_BY: Final[Mapping[str, frozenset[str]]] = {
    "ops": frozenset({NAMES}),
    "op_details": frozenset({NAMES}),
    "op_kernels": frozenset({NAMES}),
    "communication_links": frozenset({NAMES}),
    "memory": frozenset({NAMES, ALLOCATIONS}),
    "memory_details": frozenset({NAMES, ALLOCATIONS}),
    "memory_peak": frozenset({NAMES, ALLOCATIONS}),
    "memory_blocks": frozenset({NAMES, ALLOCATIONS}),
    "tree": frozenset({NAMES, MODULE_NAMES}),
    **{declared.table: declared.key_rests_on for declared in MATCHED_TABLES},
}
"""Table of a Diff -> what the keys of its rows rest on."""
_RESTS: Final = frozenset({NOT_LISTED, NOT_LISTED_COLLECTIVES})
_OF_OPS: Final = frozenset({"ops", "op_details", "op_kernels", "tree", "modules"})
_OF_KERNELS: Final = frozenset(
    {"kernels", "kernel_types", "op_details", "op_kernels", "communication", "communication_details"}
)
"""Tables of a Diff whose rows come from the ops, and from the kernels, of a source."""
_WORDS: Final = {"ops": "operators", "kernels": "kernels", "api": "host API calls", "modules": "modules"}

_MODEL: Final = frozenset({"model", "model_name", "arch", "architecture"})
"""Keys of a configuration whose values name another program."""


_IN_COMMON: Final = 0.5
"""Share of the names of the operators, and of the time of either side, that both have at least where they do the same
work: of the names 0.85 and more between captures of one model, 0.35 and less between models. An operator that is new,
or in the place of another, can take most of the time, but not most of the names.
"""
_FEWEST_NAMES: Final = 5
"""Operators of a side from which on their names say which model it is."""
INSTEAD: Final = (
    "Compare captures of the same work (--op-map says which operators are the same under another name), or see the "
    "tables all the same with --force."
)


class Recorded(Struct, frozen=True):
    """How two sides differ in how they were recorded. `by_name`: operators are matched by name for that alone.

    `timeline`: on which the candidate was timed. `is_subject`: the sides ran on other devices, so that what exists on
    one of them only is what the comparison is about. `cut`: per side the tables of which its source lists only a part.
    `other_work`: where the inputs of one side have another size.
    """

    found: tuple[Difference, ...]
    by_name: bool
    timeline: str
    is_subject: bool
    labels: tuple[str, str]
    cut: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    other_work: OtherWork | None = None

    def of(self, kind: str, metric: str) -> tuple[Difference, ...]:
        """Return the differences that make a series of this kind incomparable."""
        return disturbing(self.found, rests_on(kind, metric, self.timeline))

    def why_not(self, kind: str, metric: str) -> str:
        """Return the reason why series of a kind have no verdict; "" where they may."""
        return "; ".join(one.sentence for one in self.of(kind, metric))

    @property
    def of_everything(self) -> tuple[Difference, ...]:
        """The differences that leave nothing to compare."""
        return disturbing(self.found, frozenset({RATE}))

    def marked(self, name: str, table: Columns) -> Columns:
        """Return the rows `name` of a Diff, those of one side UNMATCHED where the recordings may be the cause, or where
        the other side does not list all that it has.
        """
        if "status" not in table.arrays:
            return table
        unlike = not self.is_subject and self._disturbs(name)
        doubtful = {word for word, cut in zip((ADDED, REMOVED), self.cut, strict=True) if unlike or name in cut}
        if not doubtful:
            return table
        names = table.listed(NAME) if "name" in table.arrays else [""] * len(table)
        texts = [
            UNMATCHED if word in doubtful or (word != BOTH and text in _RESTS) else word
            for word, text in zip(table.listed(STATUS), names, strict=True)
        ]
        return table.having(status=objects(texts))

    def operators(self, found: Operators) -> Operators:
        """Return operators, those of one side UNMATCHED where the recordings may be the cause."""
        return replace(
            found,
            ops=self.marked("ops", found.ops),
            everything=self.marked("ops", found.everything),
            names=self.marked("ops", found.names),
            details=self.marked("op_details", found.details),
        )

    def tree(self, table: Columns | None) -> Columns | None:
        """Return the rows of a tree, those of one side UNMATCHED as in `marked`."""
        return None if table is None else self.marked("tree", table)

    def _disturbs(self, name: str) -> bool:
        words = _KEYED_BY.get(name)
        return bool(words and disturbing(self.found, words))

    def notes(self) -> list[str]:
        """Return sentences: how the operators are matched and why, what is not judged, and what to record."""
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


def compare_recordings(
    baseline: LoadedSide, candidate: LoadedSide, options: DiffOptions
) -> tuple[Recorded, DiffOptions]:
    """Return how the sides differ in how they were recorded, and the options that this leaves: with shapes on one side
    only, operators are matched by name.
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
        None if lacks_shapes else find_other_work(baseline, candidate),
    )
    return recorded, replace(options, match="name") if by_name else options


def _cut(side: LoadedSide) -> frozenset[str]:
    """Return the tables of a Diff of which the source of a side lists only a part: tables in texts that were
    shortened.
    """
    settings = dict.fromkeys(side.captures.listed(SETTINGS_COLUMN))
    if not any(queries.settings_of(text).get("profiler") == "summary" for text in settings):
        return frozenset()
    asked = ((queries.ops, _OF_OPS), (queries.kernels, _OF_KERNELS))
    found = [tables for question, tables in asked if _RESTS & {*side.query(question).listed(NAME)}]
    return frozenset().union(*found)


def _recordings(side: LoadedSide) -> Sequence[Recording]:
    """Return the distinct recordings of the runs of a side."""
    ops = side.query(queries.ops)
    number, _ = number_distinct_rows([ops[NAME], ops[INPUT_SHAPES]])
    shaped, placed = ops[INPUT_SHAPES] != "", ops[MODULE] != ""
    of_run = ops.integers(RUN_ID)
    with_memory = {run_id for run_id, has in side.filled_tables().rows(RUN_ID, coverage.MEMORY) if has}
    said = side.query_with(queries.recordings)
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


def find_refusal(
    baseline: LoadedSide, candidate: LoadedSide, operators: Operators | None, recorded: Recorded
) -> tuple[str, str]:
    """Return why the two sides have no verdicts, a sentence and the word of `Judgement.refusal`; "" twice where they
    have.
    """
    found = [
        (_several_jobs(baseline, None if operators is None else operators.baseline_rows), INCOMPARABLE),
        (_several_jobs(candidate, None if operators is None else operators.candidate_rows), INCOMPARABLE),
        (_other_work(baseline, candidate, operators), INCOMPARABLE),
        *((_part(side), NEVER_JUDGED) for side in (baseline, candidate)),
        (_overlap(baseline, candidate), NEVER_JUDGED),
        *((_mixture(side), NEVER_JUDGED) for side in (baseline, candidate)),
        (other_track(baseline, candidate), NEVER_JUDGED),
        (_guess(baseline, candidate), GUESS),
        *((_waits_for_ranks(side), RANKS) for side in (baseline, candidate)),
        _otherwise_recorded(recorded),
        (_timed_otherwise(baseline, candidate), SETTINGS),
        (_too_few(baseline, candidate, recorded), TOO_FEW),
    ]
    return next(((sentence, word) for sentence, word in found if sentence), ("", ""))


def _timed_otherwise(baseline: LoadedSide, candidate: LoadedSide) -> str:
    if own_time(baseline) == own_time(candidate):
        return ""
    return "Not judged: one side was timed on the device, the other on the host."


def _guess(baseline: LoadedSide, candidate: LoadedSide) -> str:
    """Say that the times of a side are a guess, which no number of runs makes sure."""
    guessed = [side for side in (baseline, candidate) if are_guesses(side.captures.listed(SETTINGS_COLUMN))]
    if not guessed:
        return ""
    labels = short_names([side.side for side in (baseline, candidate)])
    of_sides = {baseline.side.label: labels[0], candidate.side.label: labels[1]}
    named = " and ".join(dict.fromkeys(of_sides[side.side.label] for side in guessed))
    are_stored = any(needs_store(side.side.label) for side in guessed)
    how = "tracker ingest --again --input-format" if are_stored else "--input-format"
    why = f"the times of {named} are a guess, which {how} training_log confirms"
    return f"Not judged, however many runs there are: {why}."


def _waits_for_ranks(side: LoadedSide) -> str:
    for run_id, ranks, awaited in side.runs.rows(RUN_ID, RANKS_COLUMN, RANKS_AWAITED):
        if awaited is not None:
            return f"Not judged: run {run_id} has {ranks} of {awaited} ranks."
    return ""


def _too_few(baseline: LoadedSide, candidate: LoadedSide, recorded: Recorded) -> str:
    if baseline.side.runs > 1:
        return ""
    needed = DEFAULTS.runs_needed(1, candidate.side.runs)
    if candidate.side.runs == 1:
        # no number of runs judges a step of other work
        what = "the time" if recorded.other_work is None else "operators with the same inputs"
        return f"One run each: no verdict on {what}; {needed}."
    return f"{counted(candidate.side.runs, 'run')} against 1: {needed}."


def _overlap(baseline: LoadedSide, candidate: LoadedSide) -> str:
    if are_same_runs(baseline, candidate):
        is_of_files = baseline.store is not candidate.store or not needs_store(baseline.side.label)
        return f"Not judged: both sides are the same {'files' if is_of_files else 'runs'}."
    both = sorted({*baseline.run_ids} & {*candidate.run_ids})
    if baseline.store is not candidate.store or not both:
        return ""
    return f"Not judged: on both sides is run {format_numbers(both)}."


def are_same_runs(baseline: LoadedSide, candidate: LoadedSide) -> bool:
    """Return whether both sides hold the same recordings: the same runs of a database, or files of the same content."""
    if baseline.store is candidate.store and {*baseline.run_ids} == {*candidate.run_ids}:
        return True
    if all(needs_store(side.side.label) for side in (baseline, candidate)):
        # a database takes each recording once
        return False
    files = [sorted(side.query_with(queries.sources).listed(DIGEST)) for side in (baseline, candidate)]
    return files[0] == files[1] and bool(files[0])


def _part(side: LoadedSide) -> str:
    if side.chosen_steps is not None:
        return f"Not judged: {side.side.label} is only chosen steps of its runs."
    if side.ranks is not None or side.is_selection:
        return f"Not judged: {side.side.label} is only chosen ranks of its runs."
    return ""


def _mixture(side: LoadedSide) -> str:
    mixed = [words for column, words in _LINE.items() if len({*side.runs.listed(column)}) > 1]
    return f"Not judged: {side.side.label} mixes {mixed[0]}s." if mixed else ""


def _other_work(baseline: LoadedSide, candidate: LoadedSide, operators: Operators | None) -> str:
    """Return the sentence that says that two sides do different work, "" where they do the same: nothing may be said of
    which one is faster.
    """
    models = [_models(side) for side in (baseline, candidate)]
    other = _different(baseline, candidate, "workload") or say_none_shared(baseline, candidate)
    if not other and all(models) and not models[0] & models[1]:
        other = f"different model ({' | '.join(sorted(models[0]))} and {' | '.join(sorted(models[1]))})"
    shares = None if other or operators is None else _in_common(operators)
    if shares is not None:
        other = _describe_few_names(baseline, candidate, shares)
    return f"Not comparable: {other}." if other else ""


def _describe_few_names(baseline: LoadedSide, candidate: LoadedSide, shares: tuple[float, float]) -> str:
    """Return what shows that the operators are those of other work, or of another model; "" where nothing does."""
    if max(shares) < _IN_COMMON:
        names, time = (f"{100 * share:.0f} %" for share in shares)
        return f"only {names} of the operators are on both sides, by their names, with {time} of the time of one"
    return describe_other_model(baseline, candidate, shares[0])


def _several_jobs(side: LoadedSide, rows: Columns | None) -> str:
    """Return the sentence that says that the runs of a side are no repeats of one job; "" where they may be."""
    if rows is None or _common_share(side, rows) >= _IN_COMMON:
        return ""
    one = f"run of {side.side.label} (run:ID)" if needs_store(side.side.label) else f"file of {side.side.label}"
    few = f"the {side.side.runs} runs of {side.side.label} have few operators in common, as different models have"
    return f"Not comparable: {few}. Name one {one}."


def _common_share(side: LoadedSide, rows: Columns) -> float:
    """Share of the own time of a side's ops (by name) that lies in ops which all of its runs with ops have."""
    if side.side.runs < 2:
        return 1.0
    (own,), _ = number_tables([rows], ["name"])
    times = match.reduce_per_run(side, own, [OWN_NS])[OWN_NS]
    times = times[:, ~np.isnan(times).all(axis=0)]
    in_all = ~np.isnan(times).any(axis=1)
    total = float(np.nansum(times))
    return float(np.nansum(times[in_all])) / total if total else 1.0


def _in_common(operators: Operators) -> tuple[float, float] | None:
    """Return the shares of the names of the operators, and of the time of that side which has less of it in common,
    that both sides have; None where they have too few operators to say which work it is.
    """
    ops = operators.everything
    number, first = number_distinct_rows([ops[NAME]])
    sides = [np.nan_to_num(ops.reals(name)) for name in (BASELINE_NS, CANDIDATE_NS)]
    times = [np.bincount(number, own, len(first)) for own in sides]
    there = [own > 0 for own in times]
    if min(own.sum() for own in there) < _FEWEST_NAMES:
        return None
    both = there[0] & there[1]
    names = float(both.sum() / (there[0] | there[1]).sum())
    time = min(float(own[both].sum() / own.sum()) for own in times)
    return names, time


def _models(side: LoadedSide) -> set[str]:
    facts = side.query_with(queries.facts).rows(KIND, KEY, VALUE)
    return {value for kind, key, value in facts if kind == "configuration" and key.lower() in _MODEL}


def _otherwise_recorded(recorded: Recorded) -> tuple[str, str]:
    """Return what in the settings leaves nothing to judge; without step markers a step is something else."""
    found = recorded.of_everything
    if not found:
        return "", ""
    is_step = any(one.aspect.field == "steps" for one in found)
    sentence = f"Not {'comparable' if is_step else 'judged'}: {'; '.join(one.sentence for one in found)}."
    return f"{sentence} {remedies(found)}".rstrip(), INCOMPARABLE if is_step else SETTINGS


def other_track(baseline: LoadedSide, candidate: LoadedSide) -> str:
    """Return the sentence that says that two sides are of different tracks, "" where they are of one."""
    other = [_different(baseline, candidate, what) for what in ("device", "configuration")]
    words = " and ".join(filter(None, other))
    return f"Compared, not judged: {words}." if words else ""


_LINE: Final = {"workload": "workload", "device": "device", "vendor": "device", "configuration": "configuration"}
"""Column of the runs of a side -> what must be the same in all of them, in words."""


def _different(baseline: LoadedSide, candidate: LoadedSide, what: str) -> str:
    one, other = (getattr(side.side, what) for side in (baseline, candidate))
    if what == "workload":
        one, other = main_of(one), main_of(other)
    # files belong to no workload, so that they may be of any
    if one == other or (what == "workload" and FILES in (one, other)):
        return ""
    return f"different {what} ({one or 'none'} and {other or 'none'})"
