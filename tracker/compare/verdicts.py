"""Whether two sides can be judged, and the verdicts of the rows of a diff where they can.

Each row of a table is one series; its verdict may rest on other runs than the row shows: see `regressions.sides`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from tracker.columns import Columns, objects
from tracker.compare.comparable import INSTEAD, find_refusal
from tracker.compare.operators import own_time
from tracker.detect import Verdict, traits_of, words_of_limits
from tracker.regressions.hosts import note_of
from tracker.regressions.sides import (
    STEP,
    InHistory,
    SideVerdicts,
    UserMark,
    stored_or_history,
    verdicts_of_sides,
)
from tracker.results import VERDICT_COLUMNS, DiffOptions, Judgement
from tracker.results.verdicts import EXCUSED, INCOMPARABLE, TOO_FEW, GateResult, reason_words
from tracker.schema.series import (
    KIND,
    KIND_OF_TABLE,
    NO_SERIES,
    OWN_TIMES,
    RUN,
    STEP_BOUNDS,
    STEP_KEY,
    WAYS,
    SeriesKey,
    metric_of_column,
)
from tracker.units import counted, format_diff, format_numbers, some_of

if TYPE_CHECKING:
    from tracker.compare.comparable import Recorded
    from tracker.compare.operators import Operators
    from tracker.compare.side import LoadedSide

_FINDINGS: Final = ("REGRESSED", "ADDED", "SUSPECT", "IMPROVED", "REMOVED")
_MARKS: Final = 2
"""Words of users that a headline names."""
_NO_REASON: Final = "acknowledged"
"""What stands for the reason of an ack that gives none."""
Row = Mapping[str, Any]


class Judged(Struct, frozen=True, eq=False):
    """How two sides were judged. `found`: None where they were not; `metric`: the time of ops.

    `left_out`: names of tables of which a row is only a part of a series. `of_ops`: the ops of the diff are series.
    `step_ratio`: by how much a step must change to be a finding, 0.05 = 5 %. `recorded`: how the sides were recorded.
    `history`: how the candidate was judged when it came, where this comparison is another one.
    """

    judgement: Judgement
    found: SideVerdicts | None
    metric: str
    by_name: bool
    left_out: frozenset[str]
    of_ops: bool
    step_ratio: float | None = None
    recorded: Recorded | None = None
    history: InHistory | None = None

    @property
    def gates(self) -> Mapping[str, GateResult]:
        """How each word of `--fail-on` ends; empty where nothing was judged."""
        return {} if self.found is None else self.found.gates

    @property
    def base_runs(self) -> tuple[int, ...]:
        """Numbers of the runs of the level that a stored verdict of the step rests on; () where those are the runs of
        the baseline.
        """
        return () if self.found is None else self.found.base_runs or ()

    def level_words(self, change: float) -> tuple[str, ...]:
        """Return what a stored verdict rests on, where it does; `change`: against that, a ratio."""
        level = f"the level before (run {format_numbers(sorted(self.base_runs))})"
        return (f"Judged against {level}: {format_diff(change)}.",) if self.base_runs else ()

    @property
    def history_words(self) -> tuple[str, ...]:
        """How the candidate was judged when it came, where that is not what stands here; and what it is back to."""
        found = self.history
        if found is None:
            return ()
        if found.is_older:
            return (f"{found.version} is the older side: name it first for what changed since.",)
        returned = (found.returned,) if found.returned else ()
        if self.base_runs:
            return returned
        who = f"{found.version} in its history"
        if not found.base_runs:
            return (f"{who}: nothing came before it that it could be judged against.",)
        if found.verdict is None or found.change is None:
            return (f"{who}: the step is not judged.",)
        level = f"the level before it (run {format_numbers(sorted(found.base_runs))})"
        return (f"{who}: {found.words}, {format_diff(found.change)} against {level}.", *returned)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What findings and users say of the candidate beside its verdict: sentences of a headline."""
        found = self.found
        if found is None:
            return ()
        marks = sorted(found.marks, key=lambda mark: (-len(mark.names), mark.incident_id))
        more = [f"{counted(len(marks) - _MARKS, 'more word')} of users: tracker findings lists them."]
        return (*_still(found), *map(_mark_words, marks[:_MARKS]), *more[: len(marks) > _MARKS])

    def into(self, name: str, table: Columns) -> Columns:
        """Return the rows `name` of a Diff with their VERDICT_COLUMNS filled; a row that shares its series with others
        is not judged.
        """
        is_judged = name == "overall" or name in KIND_OF_TABLE
        if not is_judged or self.found is None or name in self.left_out or not len(table):
            return table
        if name == "overall":
            keys = _list_keys_of_run(self.found, table)
        else:
            keys = list_keys(name, table, self.metric, by_name=self.by_name)
        found = self.filled(table, keys)
        if name != "overall" or self.recorded is None or not self.recorded.found:
            return found
        verdicts, reasons = [], []
        for metric, verdict, reason in found.rows("metric", "verdict", "reason"):
            field = metric_of_column(metric)
            # a stored verdict rests on runs whose steps were cut alike: it says nothing of these two numbers
            stands = all(one.aspect.disturbs != {STEP_BOUNDS} for one in self.recorded.of(RUN, field))
            verdicts.append(verdict if stands else None)
            has_words = stands and (verdict or reason)
            reasons.append(reason if has_words else self.recorded.why_not(RUN, field) or None)
        return found.having(verdict=objects(verdicts), reason=objects(reasons))

    def filled(self, table: Columns, keys: Sequence[SeriesKey]) -> Columns:
        """Return the rows with their VERDICT_COLUMNS filled from the series `keys`, one per row; NO_SERIES for none,
        and a row that shares its series with others is not judged.
        """
        found = self.found
        if found is None or not len(table) or not found.said:
            return table
        rows_of = Counter(keys)
        rows = [found.said.get(key) if rows_of[key] == 1 else None for key in keys]
        filled: dict[str, Any] = {
            name: np.array(
                [np.nan if row is None else row["judged_change" if name == "judged_diff" else name] for row in rows]
            )
            for name in VERDICT_COLUMNS
            if name not in ("verdict", "reason")
        }
        filled["verdict"] = objects([row and row["verdict"] for row in rows])
        # why a verdict is no change, or what an older finding says, in words
        filled["reason"] = objects([
            None if row is None
            else EXCUSED if key in found.excused
            else found.still.get(key) or reason_words(row["verdict"], row["reason"]) or None
            for row, key in zip(rows, keys, strict=True)
        ])  # fmt: skip
        if self.recorded is not None and self.recorded.found:
            pairs = {key[:2]: self.recorded.why_not(*key[:2]) for key in set(keys) if key != NO_SERIES}
            why = [pairs.get(key[:2]) or None for key in keys]
            words = zip(filled["verdict"], filled["reason"], why, strict=True)
            filled["reason"] = objects([own if word or not other else other for word, own, other in words])
        return table.having(**filled)

    def op_key(self, name: str, input_shapes: str) -> SeriesKey:
        """Return the series of an op with shapes, or without ("op_name")."""
        return SeriesKey("op" if input_shapes or not self.by_name else "op_name", self.metric, name, input_shapes)

    def of_op(self, name: str, input_shapes: str) -> Row | None:
        """Return what is said of an op with shapes, or without ("op_name"), None for nothing."""
        return self._row(self.op_key(name, input_shapes)) if self.of_ops else None

    def of_name(self, name: str) -> Row | None:
        """Return what is said of all shapes of an op together."""
        return self._row(SeriesKey("op_name", self.metric, name)) if self.of_ops else None

    def of_cause(self, name: str, input_shapes: str) -> Row | None:
        """Return what is said of an op: of the shapes `input_shapes`, of all together without any."""
        return self.of_op(name, input_shapes) if input_shapes else self.of_name(name)

    def of_total(self, total_metric: str) -> Row | None:
        """Return what is said of `step_ns`, `e2e_ns` or a part of them, `data_loading_ns`."""
        name = total_metric.removesuffix("_ns").replace("_", " ")
        rows = (self._row(SeriesKey(RUN, metric_of_column(total_metric), name, part=way)) for way in WAYS)
        return next((row for row in rows if row is not None), None)

    def of_part(self, metric: str) -> Row | None:
        """Return what is said of a part of the step, by its metric."""
        keys = [] if self.found is None else [key for key in self.found.said if key[:2] == (RUN, metric)]
        return next((row for key in keys if (row := self._row(key)) is not None), None)

    def findings(self) -> dict[str, Row]:
        """Name of an op -> what is said of it, of those that are a finding or a suspicion, the largest contribution
        first.

        It is that of all shapes together, or where that is no finding, that of the shape that contributes most.
        """
        if self.found is None or not self.of_ops:
            return {}
        kinds = ("op_name",) if self.by_name else ("op_name", "op")
        rows = [
            {**dict(zip(SeriesKey._fields, key, strict=True)), **own}
            for key, own in sorted(self.found.said.items(), key=itemgetter(0))
            if own["verdict"] in _FINDINGS and key[0] in kinds and key[1] == self.metric
        ]
        rows.sort(key=lambda row: (row["verdict"] == "SUSPECT", row["kind"] == "op", *_by_contribution(row)))
        of_name: dict[str, Row] = {}
        for row in rows:
            of_name.setdefault(row["name"], row)
        return {row["name"]: row for row in sorted(of_name.values(), key=_by_contribution)}

    def _row(self, key: SeriesKey) -> Row | None:
        row = None if self.found is None else self.found.said.get(key)
        return None if row is None or row["verdict"] is None else row


def _by_contribution(row: Row) -> tuple[bool, float, str]:
    """Return a sort key: the largest contribution first, those that have none last."""
    size = abs(row["contribution"])
    return bool(np.isnan(size)), -size, row["name"]


def judge(
    baseline: LoadedSide,
    candidate: LoadedSide,
    options: DiffOptions,
    recorded: Recorded,
    operators: Operators | None = None,
) -> Judged:
    """Return the verdicts of `candidate` against `baseline`, or the sentence that says why there are none.

    `operators`: of both, None where nobody compares them.
    """
    whole_ops = options.max_kernels is None and not options.op_map
    left_out = _left_out(options, whole_ops)
    by_name = options.match == "name"
    reason, refusal = find_refusal(baseline, candidate, operators, recorded)
    found = history = None
    if not reason:
        found = verdicts_of_sides(baseline.store, baseline.run_ids, candidate.run_ids, candidate_store=candidate.store)
        history = found.history
    elif refusal == TOO_FEW and candidate.store is baseline.store:
        # the level before may have one run: its facts are judged all the same, and fail a gate
        with baseline.store.connect() as connection:
            found, history = stored_or_history(connection, baseline.run_ids, candidate.run_ids)
    if found is None:
        why = [reason, *([INSTEAD] if refusal == INCOMPARABLE and not options.force else [])]
        judgement = Judgement(judged=False, sentences=tuple(why), refusal=refusal)
        return Judged(
            judgement, None, own_time(candidate), by_name, left_out, whole_ops, recorded=recorded, history=history
        )
    counts = _counts(found, own_time(candidate), "op_name" if by_name else "op")
    step = recorded.why_not(RUN, "duration_ns")
    not_judged = [f"The step and all that the host timed are not judged: {step}."] if step else []
    limits = words_of_limits(found.rows)
    sentences = (
        _judged_against(found, baseline, candidate),
        *([f"Operators by {'name' if by_name else 'name and shapes'}: {_listed(counts)}."] if counts else []),
        *not_judged,
        _shared(found),
        *filter(None, [note_of(found.host)]),
        *([f"Judged by thresholds of your own: {limits}."] if limits else []),
        *_without_verdicts(left_out, options),
    )
    judgement = Judgement(True, sentences, found.shift, tuple(counts.items()), stored=found.base_runs is not None)
    traits = traits_of([STEP_KEY], found.rows, device_timed=candidate.side.timeline == "device")
    step_ratio = float(np.expm1(traits.ratio[0]))
    return Judged(judgement, found, own_time(candidate), by_name, left_out, whole_ops, step_ratio, recorded, history)


def _left_out(options: DiffOptions, whole_ops: bool) -> frozenset[str]:
    """Return the tables of which a row is only a part of what was judged, or more."""
    of_ops = ["ops"] if options.module or not whole_ops else []
    of_memory = ["memory"] if options.match == "name" or options.op_map else []
    return frozenset([*of_ops, *of_memory, *(["kernels"] if options.op else [])])


def _counts(found: SideVerdicts, metric: str, kind: str) -> dict[str, int]:
    """Verdict -> series of `kind` that have it, changes first."""
    own = Counter(row["verdict"] for key, row in found.said.items() if key[:2] == (kind, metric))
    order = (*_FINDINGS, *(one.name for one in Verdict if one.name not in _FINDINGS))
    return {word: own[word] for word in order if word in own}


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {word}" for word, number in counts.items())


def _judged_against(found: SideVerdicts, baseline: LoadedSide, candidate: LoadedSide) -> str:
    """Return which runs the verdicts rest on, and what so many runs can tell."""
    new = candidate.side.runs
    if found.base_runs is not None:
        base = len(found.base_runs)
        numbers = f" (run {format_numbers(sorted(found.base_runs))})" if base else ""
        runs = f"Judged as in history and findings: {counted(new, 'run')} against {base} of the level before{numbers}"
    else:
        base = baseline.side.runs
        runs = f"Judged for this comparison alone: {counted(new, 'run')} against {base}"
    if base < found.limits.least_base:
        return f"{runs}: {found.limits.runs_needed(base, new)}."
    if new < found.limits.least_new:
        lacks = found.limits.least_new - new
        decide = f"{counted(lacks, 'more run')} of {candidate.side.label} decide{'s' if lacks == 1 else ''}"
        return f"{runs}: suspects only, {decide}."
    return f"{runs}."


def _shared(found: SideVerdicts) -> str:
    if found.shift is None:
        return "Too few operators are in all runs to estimate machine-wide drift."
    return f"Machine-wide drift {format_diff(found.shift)}, removed from the verdicts."


def _still(found: SideVerdicts) -> Iterator[str]:
    """Yield what an older finding says of the step."""
    keys = {key[2]: key for key in found.still if key[0] == RUN and key[2] in STEP}
    if keys:
        name = next(name for name in STEP if name in keys)
        yield f"The {'step' if name == 'step' else 'time of the whole capture'} is {found.still[keys[name]]}."


def _mark_words(mark: UserMark) -> str:
    """Return what a user said, a sentence.

    >>> _mark_words(UserMark(3, "expect", "ann", "float64", ("mm", "add", "pow"), is_whole=False, leaves_step=True))
    'ann accepted mm and 2 more of I-3 as intended: float64. The step still counts.'
    """
    what = f"I-{mark.incident_id}" if mark.is_whole else f"{some_of(list(mark.names), most=1)} of I-{mark.incident_id}"
    done = {
        "ack": f"acknowledged {what}",
        "expect": f"accepted {what} as intended",
        "mute": f"muted {what}",
        "invalid": f"marked {what} as a false positive",
    }[mark.action]
    reason = "" if mark.reason == _NO_REASON else f": {mark.reason}"
    counts = " The step still counts." if mark.leaves_step and mark.action in ("expect", "invalid") else ""
    return f"{mark.who} {done}{reason}.{counts}"


def _without_verdicts(left_out: frozenset[str], options: DiffOptions) -> Iterator[str]:
    if "ops" in left_out:
        option = "--module" if options.module else "--max-kernels" if options.max_kernels is not None else "--op-map"
        yield f"Operators are listed without verdicts: with {option} a row is not what was judged."
    if "kernels" in left_out:
        yield "Kernels are listed without verdicts: with --op a row is not what was judged."
    if "memory" in left_out and "memory" in options.only:
        option = "--match name" if options.match == "name" else "--op-map"
        yield f"Memory is listed without verdicts: with {option} a row is not what was judged."


def list_keys(table_name: str, table: Columns, own_time: str, *, by_name: bool) -> list[SeriesKey]:
    """Return the series of each row of a table of a Diff; NO_SERIES for rows that are none.

    `own_time`: the time that operators are judged by; `by_name`: all shapes of an operator are one row.
    """
    kind = KIND_OF_TABLE[table_name]
    if kind.word == "op" and by_name:
        kind = KIND["op_name"]
    metric = own_time if kind.metrics == OWN_TIMES else kind.metrics[0].name
    return [kind.make_key(metric, values) for values in table.rows(*kind.diff_columns)]


def _list_keys_of_run(verdicts: SideVerdicts, table: Columns) -> list[SeriesKey]:
    """Return the series of each overall row: what both sides measured in the same way, the best of WAYS."""
    key_of_metric: dict[str, SeriesKey] = {}
    # later ones replace earlier ones: a series without a verdict stands, for its reason, where none has one
    for has_verdict in (False, True):
        for way in reversed(WAYS):
            for key, row in verdicts.said.items():
                if key.kind == RUN and key.part == way and (row["verdict"] is not None) == has_verdict:
                    key_of_metric[key.metric] = key
    return [key_of_metric.get(metric_of_column(metric), NO_SERIES) for metric in table["metric"]]
