"""Whether two sides can be judged, and the verdicts of the rows of a diff where they can.

Each row of a table is one series; its verdict may rest on other runs than the row shows: see `regressions.sides`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.columns import Columns, objects
from tracker.compare.comparable import INSTEAD, find_refusal
from tracker.compare.notes import sentences_of_judgement
from tracker.compare.operators import own_time
from tracker.compare.own_runs import list_keys
from tracker.detect import Verdict, traits_of
from tracker.detect.series import NO_OPERATORS
from tracker.regressions.bases import Bases
from tracker.regressions.sides import InHistory, SideVerdicts, stored_or_history, verdicts_of_sides
from tracker.results import DiffOptions, Judgement
from tracker.results.verdicts import (
    ALIKE_REASON,
    CHANGED,
    EXCUSED,
    INCOMPARABLE,
    TOO_FEW,
    AlikeChanges,
    GateResult,
    SeriesVerdict,
    reason_words,
)
from tracker.schema.column_names import METRIC, REASON, VERDICT
from tracker.schema.series import (
    KIND_OF_TABLE,
    NO_SERIES,
    RUN,
    RUN_SERIES_OF_NUMBER,
    STEP_BOUNDS,
    STEP_KEY,
    SeriesKey,
    key_of_run,
    metric_of_number,
    ways_of_number,
)

if TYPE_CHECKING:
    from tracker.compare.comparable import Recorded
    from tracker.compare.operators import Operators
    from tracker.compare.side import LoadedSide
    from tracker.results.waiting import AwaitedRuns

_OVERALL: Final = "overall"
_UNJUDGED: Final = SeriesVerdict()
_MOST_ALIKE: Final = 0.9
"""Share of the operators that must have moved with the machine for all to have moved alike."""


class Judged(Struct, frozen=True, eq=False):
    """How two sides were judged.

    `verdicts`: of all series; None where the sides were not judged.
    `own_time`: the time by which operators are judged.
    `by_name`: operators are matched by name, so that a row is all shapes of one.
    `partial_tables`: names of tables whose rows are only parts of series.
    `has_op_series`: the operators of the diff are series, and not made from several.
    `recorded`: how the sides were recorded.
    `least_step_change`: by how much a step must change to be a finding, 0.05 = 5 %.
    `history`: how the candidate was judged when it came, where this comparison is another one.
    """

    judgement: Judgement
    verdicts: SideVerdicts | None
    own_time: str
    by_name: bool
    partial_tables: frozenset[str]
    has_op_series: bool
    recorded: Recorded
    least_step_change: float | None = None
    history: InHistory | None = None

    @property
    def gates(self) -> Mapping[str, GateResult]:
        """How each word of `--fail-on` ends; empty where nothing was judged."""
        return {} if self.verdicts is None else self.verdicts.gates

    @property
    def awaited(self) -> AwaitedRuns | None:
        """The runs of the candidate that may still come and change its verdicts; None: none are awaited."""
        return None if self.verdicts is None else self.verdicts.awaited

    @property
    def bases(self) -> Bases:
        """The runs that series were judged against, of those for which these are not the runs of the step."""
        return {} if self.verdicts is None else self.verdicts.bases

    @property
    def base_runs(self) -> tuple[int, ...]:
        """Numbers of the runs of the level that a stored verdict of the step rests on; () where those are the runs of
        the baseline.
        """
        return () if self.verdicts is None else self.verdicts.base_runs or ()

    def add_verdicts(self, table_name: str, table: Columns) -> Columns:
        """Return a table of a Diff with its VERDICT_COLUMNS filled, where its rows are series."""
        if self.verdicts is None or table_name in self.partial_tables or not len(table):
            return table
        if table_name == _OVERALL:
            filled = self.fill_verdicts(table, _list_keys_of_run(self.verdicts, table))
            return self._hide_incomparable_numbers(filled) if self.recorded.found else filled
        if table_name not in KIND_OF_TABLE:
            return table
        return self.fill_verdicts(table, list_keys(table_name, table, self.own_time, by_name=self.by_name))

    def fill_verdicts(self, table: Columns, keys: Sequence[SeriesKey]) -> Columns:
        """Return the rows with their VERDICT_COLUMNS filled from the series `keys`, one per row.

        A row of NO_SERIES has no verdict, and neither has one that shares its series with others.
        """
        if self.verdicts is None or not len(table) or not self.verdicts.by_series:
            return table
        rows_of_key = Counter(keys)
        rows = [self.verdicts.by_series.get(key) if rows_of_key[key] == 1 else None for key in keys]
        shown = [row or _UNJUDGED for row in rows]
        return table.having(
            judged_diff=np.array([one.judged_change for one in shown]),
            q=np.array([one.q for one in shown]),
            detectable=np.array([one.detectable for one in shown]),
            verdict=objects([one.verdict for one in shown]),
            reason=objects(self._list_reasons(keys, rows)),
        )

    def _list_reasons(self, keys: Sequence[SeriesKey], rows: Sequence[SeriesVerdict | None]) -> list[str | None]:
        """Return, per row, why its verdict is no change, or what an older finding says of it; None for nothing."""
        assert self.verdicts is not None
        why_not_of_family: dict[tuple[str, str], str] = {}
        if self.recorded.found:
            for kind, metric in {(key.kind, key.metric) for key in keys if key != NO_SERIES}:
                why_not_of_family[kind, metric] = self.recorded.why_not(kind, metric)
        reasons: list[str | None] = []
        for key, row in zip(keys, rows, strict=True):
            why_not = why_not_of_family.get((key.kind, key.metric))
            if why_not and (row is None or row.verdict is None):
                # the recordings differ in what this series rests on
                reasons.append(why_not)
            elif row is None:
                reasons.append(None)
            elif key in self.verdicts.excused:
                reasons.append(EXCUSED)
            else:
                still = self.verdicts.still.get(key)
                reasons.append(still or reason_words(row.verdict, row.reason) or None)
        return reasons

    def _hide_incomparable_numbers(self, table: Columns) -> Columns:
        """Return the overall rows without verdicts on numbers whose steps were cut in another way on each side.

        A stored verdict rests on runs whose steps were cut alike: it says nothing of the two numbers of the row.
        """
        verdicts, reasons = [], []
        for number, verdict, reason in table.rows(METRIC, VERDICT, REASON):
            metric = metric_of_number(number)
            is_cut_alike = all(one.aspect.disturbs != {STEP_BOUNDS} for one in self.recorded.of(RUN, metric))
            verdicts.append(verdict if is_cut_alike else None)
            if is_cut_alike and (verdict or reason):
                reasons.append(reason)
            else:
                reasons.append(self.recorded.why_not(RUN, metric) or None)
        return table.having(verdict=objects(verdicts), reason=objects(reasons))

    def key_of_op(self, name: str, input_shapes: str) -> SeriesKey:
        """Return the series of an operator with these shapes; of one matched by name, of all its shapes."""
        kind = "op_name" if self.by_name and not input_shapes else "op"
        return SeriesKey(kind, self.own_time, name, input_shapes)

    def find_op(self, name: str, input_shapes: str) -> SeriesVerdict | None:
        """Return the verdict of an operator as `key_of_op` names it, None for none."""
        return self._find(self.key_of_op(name, input_shapes)) if self.has_op_series else None

    def find_op_name(self, name: str) -> SeriesVerdict | None:
        """Return the verdict of all shapes of an operator together, None for none."""
        return self._find(SeriesKey("op_name", self.own_time, name)) if self.has_op_series else None

    def find_total(self, number: str) -> SeriesVerdict | None:
        """Return the verdict of a number of the whole step, such as `step_ns` or `e2e_ns`, None for none."""
        series = RUN_SERIES_OF_NUMBER[number]
        for way in ways_of_number(number):
            row = self._find(key_of_run(series.name, way=way))
            if row is not None:
                return row
        return None

    def find_part(self, metric: str) -> SeriesVerdict | None:
        """Return the verdict of a part of the step, by its metric, None for none."""
        if self.verdicts is None:
            return None
        for key in self.verdicts.by_series:
            if key.kind == RUN and key.metric == metric:
                row = self._find(key)
                if row is not None:
                    return row
        return None

    def find_op_findings(self) -> dict[str, tuple[SeriesKey, SeriesVerdict]]:
        """Return, per name of an operator with a finding or a suspect, the largest contribution first, its series and
        its verdict.

        It is that of all shapes together, or where that is no finding, that of the shape that contributes most.
        """
        if self.verdicts is None or not self.has_op_series:
            return {}
        kinds = ("op_name",) if self.by_name else ("op_name", "op")
        found: list[tuple[SeriesKey, SeriesVerdict]] = []
        for key, verdict in sorted(self.verdicts.by_series.items(), key=itemgetter(0)):
            if verdict.verdict in CHANGED and key.kind in kinds and key.metric == self.own_time:
                found.append((key, verdict))
        found.sort(key=_by_certainty_and_contribution)
        first_of_name: dict[str, tuple[SeriesKey, SeriesVerdict]] = {}
        for key, verdict in found:
            first_of_name.setdefault(key.name, (key, verdict))
        return dict(sorted(first_of_name.items(), key=lambda named: _by_contribution(named[1])))

    def find_alike(self, step: SeriesVerdict) -> AlikeChanges | None:
        """Return how all operators moved by one factor, where the verdict of the step says so; None where it does not.

        Of a few operators the judge says which did: `detect.alike`. Of many their median moved, which is DRIFT, and
        nine in ten must be as far from their level as it, and none a finding.
        """
        if self.verdicts is None or (step.reason != ALIKE_REASON and step.verdict != "DRIFT"):
            return None
        what, verdict_of_name = self._list_work()
        rows = verdict_of_name.values()
        if step.reason == ALIKE_REASON:
            found = [row.change for row in rows if row.reason == ALIKE_REASON]
            if not found:
                return None
            # of an operator that is too small for a finding the number may still be in their range
            others = [row.change for row in rows if row.reason != ALIKE_REASON]
            alike = [change for change in others if min(found) <= change <= max(found)]
            return AlikeChanges(what, [*found, *alike], len(rows))
        changes = [row.change for row in rows if row.verdict == "UNCHANGED"]
        is_alike = len(changes) >= _MOST_ALIKE * len(rows) and not any(row.verdict in CHANGED for row in rows)
        return AlikeChanges(what, changes, len(rows)) if changes and is_alike else None

    def list_alike_names(self) -> tuple[str, frozenset[str]]:
        """Return the names of the operators that moved by one factor, of the kernels where there are no operators; and
        what they are.
        """
        what, verdict_of_name = self._list_work()
        return what, frozenset(name for name, row in verdict_of_name.items() if row.reason == ALIKE_REASON)

    def _list_work(self) -> tuple[str, dict[str, SeriesVerdict]]:
        """Return the verdicts of the operators by name, of the kernels where there are no operators, and the word."""
        operators: dict[str, SeriesVerdict] = {}
        kernels: dict[str, SeriesVerdict] = {}
        by_series = {} if self.verdicts is None else self.verdicts.by_series
        for key, row in by_series.items():
            if row.verdict is None or key.name in NO_OPERATORS:
                continue
            if key.kind == "op_name" and key.metric == self.own_time:
                operators[key.name] = row
            elif key.kind == "kernel":
                kernels[key.name] = row
        return ("operators", operators) if operators else ("kernels", kernels)

    def _find(self, key: SeriesKey) -> SeriesVerdict | None:
        row = None if self.verdicts is None else self.verdicts.by_series.get(key)
        return None if row is None or row.verdict is None else row


def _by_contribution(judged: tuple[SeriesKey, SeriesVerdict]) -> tuple[bool, float, str]:
    """Return a sort key: the largest contribution first, those that have none last."""
    key, verdict = judged
    size = abs(verdict.contribution)
    return bool(np.isnan(size)), -size, key.name


def _by_certainty_and_contribution(
    judged: tuple[SeriesKey, SeriesVerdict],
) -> tuple[bool, bool, tuple[bool, float, str]]:
    """Return a sort key: suspects last, then single shapes, then by contribution."""
    key, verdict = judged
    return verdict.verdict == "SUSPECT", key.kind == "op", _by_contribution(judged)


def judge(
    baseline: LoadedSide,
    candidate: LoadedSide,
    options: DiffOptions,
    recorded: Recorded,
    operators: Operators | None = None,
    *,
    bases: Bases | None = None,
) -> Judged:
    """Return the verdicts of `candidate` against `baseline`, or the sentence that says why there are none.

    `operators`: of both, None where they are not compared. `bases`: see `verdicts_of_sides`.
    """
    reason, refusal = find_refusal(baseline, candidate, operators, recorded)
    verdicts: SideVerdicts | None = None
    history: InHistory | None = None
    if not reason:
        verdicts = verdicts_of_sides(
            baseline.store, baseline.run_ids, candidate.run_ids, candidate_store=candidate.store, bases=bases
        ).of_kind(baseline.step_kind)
        history = verdicts.history
    elif refusal == TOO_FEW and candidate.store is baseline.store:
        # the level before may have one run: its facts are judged all the same, and fail a gate
        with baseline.store.connect() as connection:
            verdicts, history = stored_or_history(connection, baseline.run_ids, candidate.run_ids, bases=bases)
            verdicts = verdicts and verdicts.of_kind(baseline.step_kind)

    by_name = options.match == "name"
    has_op_series = options.max_kernels is None and not options.op_map
    partial_tables = _find_partial_tables(options, has_op_series)
    least_step_change = None
    if verdicts is None:
        remedies = (INSTEAD,) if refusal == INCOMPARABLE and not options.force else ()
        judgement = Judgement(judged=False, sentences=(reason, *remedies), refusal=refusal)
    else:
        counts = _count_verdicts(verdicts, own_time(candidate), "op_name" if by_name else "op")
        sentences = sentences_of_judgement(
            verdicts,
            (baseline, candidate),
            counts,
            options,
            partial_tables,
            why_step_is_not=recorded.why_not(STEP_KEY.kind, STEP_KEY.metric),
            other_work="" if recorded.other_work is None else recorded.other_work.inputs.words,
        )
        is_stored = verdicts.base_runs is not None
        judgement = Judgement(
            True, sentences, verdicts.shift, tuple(counts.items()), stored=is_stored, coverage=verdicts.coverage
        )
        traits = traits_of([STEP_KEY], verdicts.rows, device_timed=candidate.side.timeline == "device")
        least_step_change = float(np.expm1(traits.ratio[0]))
    return Judged(
        judgement,
        verdicts,
        own_time(candidate),
        by_name,
        partial_tables,
        has_op_series,
        recorded,
        least_step_change,
        history,
    )


def _find_partial_tables(options: DiffOptions, has_op_series: bool) -> frozenset[str]:
    """Return the tables whose rows are only parts of what was judged, or more than that."""
    tables = set()
    if options.module or not has_op_series:
        tables.add("ops")
    if options.match == "name" or options.op_map:
        tables.add("memory")
    if options.op:
        tables.add("kernels")
    return frozenset(tables)


def _count_verdicts(verdicts: SideVerdicts, metric: str, kind: str) -> dict[str, int]:
    """Return verdict -> how many series of `kind` have it, changes first; what no operator launched is none."""
    counts: Counter[str] = Counter()
    for key, row in verdicts.by_series.items():
        is_chosen = key.kind == kind and key.metric == metric and key.name not in NO_OPERATORS
        if is_chosen and row.verdict is not None:
            counts[row.verdict] += 1
    others = [verdict.name for verdict in Verdict if verdict.name not in CHANGED]
    return {word: counts[word] for word in (*CHANGED, *others) if word in counts}


def _list_keys_of_run(verdicts: SideVerdicts, table: Columns) -> list[SeriesKey]:
    """Return the series of each overall row: of what both sides measured in the same way, the best of WAYS."""
    rows_of_run = {key: row for key, row in verdicts.by_series.items() if key.kind == RUN}
    key_of_metric: dict[tuple[str, tuple[str, ...]], SeriesKey] = {}
    # the last one stands: one with a verdict, else one that says why it has none, in each the best way
    for ways in {ways_of_number(number) for number in table[METRIC]}:
        for has_verdict in (False, True):
            for way in reversed(ways):
                for key, row in rows_of_run.items():
                    if key.part == way and (row.verdict is not None) == has_verdict:
                        key_of_metric[key.metric, ways] = key
    keys = [(metric_of_number(number), ways_of_number(number)) for number in table[METRIC]]
    return [key_of_metric.get(key, NO_SERIES) for key in keys]
