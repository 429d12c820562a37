"""Whether two sides can be judged, and the verdicts of the rows of a diff where they can.

Each row of a table is one series of JUDGEMENT section 1, judged from one number per run, of which the row shows the
geometric mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from tracker.columns import Columns, objects
from tracker.compare.operators import own_time
from tracker.compare.recorded import stated_recordings
from tracker.compare.refusals import TOO_FEW_RUNS, why_not
from tracker.detectors import rule
from tracker.detectors.baseline import ENOUGH
from tracker.judgement import Thresholds, Verdicts, older_runs, verdicts_of
from tracker.judgement.families import WAYS
from tracker.judgement.verdicts import SERIES_KEY
from tracker.results import VERDICT_COLUMNS, DiffOptions, Judgement
from tracker.results.verdicts import INCOMPARABLE, JUMPS, TOO_FEW
from tracker.store.chosen import Known
from tracker.units import counted, format_bytes, format_diff

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracker.columns import Flags, Texts
    from tracker.compare.recorded import Recorded
    from tracker.compare.sides import Loaded

_NAMED: Final = 3
_FINDINGS: Final = (rule.REGRESSED, rule.ADDED, rule.SUSPECT, rule.IMPROVED, rule.REMOVED)
FIELD_OF: Final = {"step_ns": "duration_ns"}
"""Metric of an overall row -> metric of its series, where they differ."""
_RUN: Final = "run"
Key = tuple[str, str, str, str, str]
Row = Mapping[str, Any]
NO_SERIES: Final[Key] = ("", "", "", "", "")


class Judged(Struct, frozen=True, eq=False):
    """How two sides were judged. `found`: None where they were not; `metric`: the time of ops.

    `left_out`: names of tables of which a row is only a part of a series. `of_ops`: the ops of the diff are series.
    `step_ratio`: by how much a step must change to be a finding, 0.05 = 5 %. `recorded`: how the sides were recorded.
    """

    judgement: Judgement
    found: Verdicts | None
    metric: str
    by_name: bool
    left_out: frozenset[str]
    of_ops: bool
    step_ratio: float | None = None
    recorded: Recorded | None = None

    def into(self, name: str, table: Columns) -> Columns:
        """The rows `name` of a Diff with their VERDICT_COLUMNS filled; a row that shares its series with others is not
        judged.
        """
        if name not in _SERIES or self.found is None or name in self.left_out or not len(table):
            return table
        found = self.filled(table, _SERIES[name](self, table))
        if name != "overall" or self.recorded is None or not self.recorded.found:
            return found
        why = [self.recorded.why_not(_RUN, FIELD_OF.get(metric, metric)) for metric in table["metric"]]
        words = zip(found.listed("verdict"), found.listed("reason"), why, strict=True)
        return found.having(reason=objects([own if word or own else other or None for word, own, other in words]))

    def filled(self, table: Columns, keys: Sequence[Key]) -> Columns:
        """The rows with their VERDICT_COLUMNS filled from the series `keys`, one per row; NO_SERIES for none, and a row
        that shares its series with others is not judged.
        """
        if self.found is None or not len(table):
            return table
        rows_of = Counter(keys)
        rows = np.array([self.found.places.get(key, -1) if rows_of[key] == 1 else -1 for key in keys])
        filled: dict[str, Any] = {}
        for column in VERDICT_COLUMNS:
            said = self.found.columns["diff" if column == "judged_diff" else column]
            is_number = said.dtype == np.float64
            taken = np.where(rows < 0, np.nan if is_number else None, said[rows])
            filled[column] = taken if is_number else _texts(taken)
        if self.recorded is not None and self.recorded.found:
            pairs = {key[:2]: self.recorded.why_not(*key[:2]) for key in set(keys) if key != NO_SERIES}
            why = [pairs.get(key[:2]) or None for key in keys]
            words = zip(filled["verdict"], filled["reason"], why, strict=True)
            filled["reason"] = objects([own if word or not other else other for word, own, other in words])
        return table.having(**filled)

    def op_key(self, name: str, input_shapes: str) -> Key:
        """The series of an op with shapes, or without ("op_name")."""
        return ("op" if input_shapes or not self.by_name else "op_name", self.metric, name, input_shapes, "")

    def of_op(self, name: str, input_shapes: str) -> Row | None:
        """What is said of an op with shapes, or without ("op_name"), None for nothing."""
        return self._row(self.op_key(name, input_shapes)) if self.of_ops else None

    def of_name(self, name: str) -> Row | None:
        """What is said of all shapes of an op together."""
        return self._row(("op_name", self.metric, name, "", "")) if self.of_ops else None

    def of_total(self, total_metric: str) -> Row | None:
        """What is said of `step_ns`, `e2e_ns` or a part of them, `data_loading_ns`."""
        name = total_metric.removesuffix("_ns").replace("_", " ")
        rows = (self._row((_RUN, FIELD_OF.get(total_metric, total_metric), name, "", way)) for way in WAYS)
        return next((row for row in rows if row is not None), None)

    def findings(self) -> dict[str, Row]:
        """Name of an op -> what is said of it, of those that are a finding or a suspicion, the largest contribution
        first.

        It is that of all shapes together, or where that is no finding, that of the shape that contributes most.
        """
        if self.found is None or not self.of_ops:
            return {}
        kinds = ("op_name",) if self.by_name else ("op_name", "op")
        rows = _rows(self.found, np.isin(self.found.columns["verdict"], _FINDINGS), kinds, self.metric)
        rows.sort(key=lambda row: (row["verdict"] == rule.SUSPECT, row["kind"] == "op", *_by_contribution(row)))
        of_name: dict[str, Row] = {}
        for row in rows:
            of_name.setdefault(row["name"], row)
        return {row["name"]: row for row in sorted(of_name.values(), key=_by_contribution)}

    def _row(self, key: Key) -> Row | None:
        if self.found is None or key not in self.found.places:
            return None
        row = _said(self.found, self.found.places[key])
        return None if row["verdict"] is None else row


def _rows(found: Verdicts, chosen: Flags, kinds: Sequence[str], metric: str) -> list[Row]:
    """What is said of the `chosen` series of some kinds and a metric, and their keys, in the order of these."""
    keys = list(found.places)
    own = [at for at in np.flatnonzero(chosen).tolist() if keys[at][0] in kinds and keys[at][1] == metric]
    return [{**dict(zip(SERIES_KEY, keys[at], strict=True)), **_said(found, at)} for at in own]


def _said(found: Verdicts, at: int) -> dict[str, Any]:
    """What is said of the series at a place."""
    return {name: column.item(at) for name, column in found.columns.items()}


def _by_contribution(row: Row) -> tuple[bool, float, str]:
    """A sort key: the largest contribution first, those that have none last."""
    size = abs(row["contribution"])
    return bool(np.isnan(size)), -size, row["name"]


def judge(baseline: Loaded, candidate: Loaded, options: DiffOptions, recorded: Recorded) -> Judged:
    """The verdicts of `candidate` against `baseline`, or the sentence that says why there are none."""
    whole_ops = options.max_kernels is None and not options.op_map
    left_out = _left_out(options, whole_ops)
    known = Known(recordings=stated_recordings(baseline))
    if candidate.store is baseline.store:
        known.recordings.update(stated_recordings(candidate))
    older = _older(baseline, candidate, known)
    reason = why_not(baseline, candidate, older, recorded)
    refusal = TOO_FEW if reason == TOO_FEW_RUNS else INCOMPARABLE
    judgement, found = Judgement(judged=False, sentences=(reason,), refusal=refusal), None
    step_ratio = None
    if not reason:
        found = verdicts_of(
            baseline.store,
            baseline.run_ids,
            candidate.run_ids,
            candidate_store=candidate.store,
            older=older,
            known=known,
        )
        by_name = options.match == "name"
        counts = _counts(found, own_time(candidate), "op_name" if by_name else "op")
        told = _told("by name" if by_name else "by name and shapes", counts)
        runs = _strength(baseline.side.runs, candidate.side.runs, older, found.thresholds.confirm)
        jumps = _jumps(found, own_time(candidate), "op_name" if by_name else "op")
        limits = _set(found.thresholds)
        step = recorded.why_not(_RUN, "duration_ns")
        not_judged = [f"The step and all that the host timed are not judged: {step}."] if step else []
        sentences = (f"{runs}.{told}", *not_judged, _shared(found), *jumps, *limits, *_not_told(left_out, options))
        centre = found.centre
        shared = float(np.expm1(centre.shift)) if centre.series else None
        judgement = Judgement(True, sentences, shared, centre.series, tuple(counts.items()))
        of_step = found.thresholds.limits((_RUN, ""), ["step"], device_timed=candidate.side.timeline == "device")
        step_ratio = float(np.max(of_step.min_ratio))
    return Judged(
        judgement, found, own_time(candidate), options.match == "name", left_out, whole_ops, step_ratio, recorded
    )


def _left_out(options: DiffOptions, whole_ops: bool) -> frozenset[str]:
    """The tables of which a row is only a part of what was judged, or more."""
    of_ops = ["ops"] if options.module or not whole_ops else []
    of_memory = ["memory"] if options.match == "name" or options.op_map else []
    return frozenset([*of_ops, *of_memory, *(["kernels"] if options.op else [])])


def _older(baseline: Loaded, candidate: Loaded, known: Known) -> tuple[tuple[int, ...], ...]:
    """For one run against one: the older runs whose noise is the yardstick, by version; none in all other cases."""
    if not baseline.side.runs == candidate.side.runs == 1 or baseline.store is not candidate.store:
        return ()
    return older_runs(baseline.store, (*baseline.run_ids, *candidate.run_ids), known)


def _counts(found: Verdicts, metric: str, kind: str) -> dict[str, int]:
    """Verdict -> series of `kind` that have it, in the order of rule.VERDICTS; none below 0.01 % of the step counts."""
    said = zip(found.places, found.columns["verdict"].tolist(), found.columns["large"].tolist(), strict=True)
    own = Counter(word for key, word, large in said if large and key[:2] == (kind, metric))
    return {word: own[word] for word in rule.VERDICTS if word in own}


def _strength(a: int, b: int, older: Sequence[Sequence[int]], confirm: int) -> str:
    """How much so many runs can tell."""
    runs = f"{counted(a, 'run')} against {b}"
    if older:
        noise = f"{counted(sum(map(len, older)), 'older run')} of {counted(len(older), 'version')}"
        next_runs = counted(confirm, "run")
        return f"{runs}: the noise of {noise} is the yardstick; suspicions only, the next {next_runs} confirm"
    if b == 1:
        return f"{runs}: suspicions only, the next {counted(confirm, 'run')} confirm"
    if a == 1:
        return f"{runs}: suspicions only; give {ENOUGH} or more runs of the baseline for verdicts"
    if min(a, b) < ENOUGH:
        return f"{runs}: only large changes show; {ENOUGH} or more runs of each version tell more"
    return runs


def _told(grain: str, counts: Mapping[str, int]) -> str:
    """What the runs told of the operators, as a sentence behind another; "" without any."""
    told = ", ".join(f"{number} {word}" for word, number in counts.items())
    return f" Operators {grain}: {told}." if told else ""


def _shared(found: Verdicts) -> str:
    centre = found.centre
    if not centre.series:
        return "Too few operators are in all runs to tell a slower machine from slower code."
    change = f"All operators together {format_diff(float(np.expm1(centre.shift)))}"
    if centre.doubtful:
        return f"{change}: taken out of the verdicts, though so many moved on their own that it may be the code."
    return f"{change}: machine or clock, taken out of the verdicts."


def _jumps(found: Verdicts, metric: str, kind: str) -> Iterator[str]:
    """Which changes of operators are INCONCLUSIVE since older runs jump so; the parts of a step follow from these."""
    unclear = _rows(found, found.columns["verdict"] == rule.INCONCLUSIVE, (kind,), metric)
    rows = sorted((row for row in unclear if row["reason"].startswith(JUMPS)), key=_by_contribution)
    if rows:
        named = [
            f"{row['name']} {format_diff(row['diff'])} ({row['reason'].rpartition(', ')[2]})" for row in rows[:_NAMED]
        ]
        more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
        yield f"INCONCLUSIVE, since older runs jump between two levels as well: {', '.join(named)}{more}."


def _set(thresholds: Thresholds) -> Iterator[str]:
    """The limits that users set, which these verdicts rest on."""
    if limits := thresholds.told():
        yield f"Judged by thresholds of your own: {limits}."


def _not_told(left_out: frozenset[str], options: DiffOptions) -> Iterator[str]:
    if "ops" in left_out:
        option = "--module" if options.module else "--max-kernels" if options.max_kernels is not None else "--op-map"
        yield f"Operators are listed without verdicts: with {option} a row is not what was judged."
    if "kernels" in left_out:
        yield "Kernels are listed without verdicts: with --op a row is not what was judged."
    if "memory" in left_out and "memory" in options.only:
        option = "--match name" if options.match == "name" else "--op-map"
        yield f"Memory is listed without verdicts: with {option} a row is not what was judged."


def _ops(judged: Judged, table: Columns) -> list[Key]:
    return [judged.op_key(*pair) for pair in table.rows("name", "input_shapes")]


def _kernels(judged: Judged, table: Columns) -> list[Key]:
    return [("kernel", "total_ns", *pair, "") for pair in table.rows("name", "input_shapes")]


def _communication(judged: Judged, table: Columns) -> list[Key]:
    return [
        ("communication", "total_ns", kind, "", part_of_collective(role, size))
        for kind, role, size in table.rows("kind", "group_role", "size_class_bytes")
    ]


def part_of_collective(role: str, size_class_bytes: float | None) -> str:
    """What tells the series of a collective from others of its kind."""
    known = size_class_bytes is not None and size_class_bytes > 0
    return ", ".join(filter(None, (role, format_bytes(size_class_bytes) if known else "")))


def _modules(judged: Judged, table: Columns) -> list[Key]:
    return [
        ("module", judged.metric, module, "", phase) if module else NO_SERIES
        for module, phase in table.rows("module", "phase")
    ]


def _memory(judged: Judged, table: Columns) -> list[Key]:
    return [("memory", "bytes", *pair, "") for pair in table.rows("name", "input_shapes")]


def _api(judged: Judged, table: Columns) -> list[Key]:
    return [("api", "self_ns", name, "", level) for level, name in table.rows("level", "name")]


def _overall(judged: Judged, table: Columns) -> list[Key]:
    assert judged.found is not None
    said = zip(judged.found.places, judged.found.columns["verdict"].tolist(), strict=True)
    judged_runs = [key for key, word in said if word is not None and key[0] == _RUN]
    # what both sides measured in the same way, a trace before the others
    run = {key[1]: key for way in reversed(WAYS) for key in judged_runs if key[4] == way}
    return [run.get(FIELD_OF.get(metric, metric), NO_SERIES) for metric in table["metric"]]


_SERIES: Final[Mapping[str, Callable[[Judged, Columns], list[Key]]]] = {
    "overall": _overall,
    "ops": _ops,
    "kernels": _kernels,
    "communication": _communication,
    "memory": _memory,
    "modules": _modules,
    "api": _api,
}


def _texts(said: Iterable[Any]) -> Texts:
    return objects([text if isinstance(text, str) and text else None for text in said])
