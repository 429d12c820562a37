"""Whether a diff fails a build, and which regressions are known from before its candidate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.compare.operators import own_time_of
from tracker.compare.references import FILES
from tracker.compare.verdicts import FIELD_OF, part_of_collective
from tracker.detectors import rule
from tracker.detectors.life import LifeRule
from tracker.errors import EXIT_NOT_COMPARABLE, EXIT_TOO_LITTLE_DATA
from tracker.judgement import known_at
from tracker.judgement.stored import kept_version
from tracker.lazy import pd
from tracker.regressions.gates import key_of_finding
from tracker.results import ADDED, REMOVED, Cause, Diff
from tracker.results.gates import FAIL_ON, NET_SHARE, Gate, GatedRow, Key, Outcome, decided, without_small_losses
from tracker.results.options import check_words
from tracker.results.verdicts import INCOMPARABLE
from tracker.store import judged, queries

if TYPE_CHECKING:
    from tracker.store import Store

Row = Mapping[str, Any]

_TABLES: Final = {
    "overall": "overall", "operator": "ops", "kernel": "kernels", "communication": "communication", "memory": "memory",
    "module": "modules", "api": "api",
}  # fmt: skip
"""Section -> the table of a Diff whose rows are judged."""
_SAME_SIZE: Final = 1.0 + rule.MIN_RATIO
_STEP: Final[Key] = ("run", "duration_ns", "", "", "")
_E2E: Final[Key] = ("run", "e2e_ns", "", "", "")
_LEAVES: Final = ("op_name", "op", "kernel")
_OF_TIME: Final = (*_LEAVES, "module", "api", "phase")
"""Kinds of series that say how long operators take: what is netted, and what fails with it."""
_MORE_CALLS: Final = ", more calls"
_REPLACED: Final = "replaced, for no net loss"
_NOTHING: Final = "the runs differ too much, or are too few, to tell anything"


class Known(Struct, frozen=True):
    """A regression that was found before the candidate. `largest`: how much worse, as a log, it may be without being
    worse than it was; None where it came (ADDED), and there is nothing to compare it with. `change`: of a finding: one
    of calls says nothing of time. `more_calls`: with it the calls became more. `most_calls`: as `largest`, of calls.
    """

    finding_id: int
    key: Key
    largest: float | None
    change: str
    more_calls: bool
    most_calls: float | None

    def covers(self, row: GatedRow) -> bool:
        """Whether something that fails is this regression, and no worse: time says nothing of memory, nor of calls."""
        if not self._is_of(row) or self._is_outgrown_by(row):
            return False
        of_time = row.verdict in (rule.REGRESSED, rule.ADDED, f"{rule.REGRESSED}{_MORE_CALLS}")
        if self.change == "calls":
            return not of_time
        if not of_time and not self.more_calls:
            return False
        if self.largest is None or row.diff is None:
            return True
        slower = 1.0 + row.diff if row.unit != "per_second" else math.inf if row.diff <= -1 else 1.0 / (1.0 + row.diff)
        return slower <= math.exp(self.largest)

    def _is_outgrown_by(self, row: GatedRow) -> bool:
        """Whether it is called more often, and further beyond the baseline than with this regression."""
        if not row.verdict.endswith(_MORE_CALLS) or row.calls_diff is None or self.most_calls is None:
            return False
        return 1.0 + row.calls_diff > math.exp(self.most_calls)

    def _is_of(self, row: GatedRow) -> bool:
        """Whether both are of one series, or this one of the op that brought the other."""
        kind, metric, name, _, _ = row.key
        came = kind == "memory" and row.verdict == rule.ADDED and self.change == "presence"
        of_op = kind == "op" and metric == self.key[1]
        return self.key == row.key or ((came or of_op) and (self.key[0], *self.key[2:]) == ("op_name", name, "", ""))


def gate_of_diff(diff: Diff, word: str = "any", known: Sequence[Known] = (), *, net_loss: float = NET_SHARE) -> Gate:
    """Whether a diff fails. `known`: regressions that are no news, see `known_before`; `new` lets them pass, and
    operators that lose less than `net_loss` of the step net of what others gained.

    Of the sections that the diff was asked for (`only`; without it all) and of the rows that its filters leave, what is
    REGRESSED, ADDED or called more often fails; with `suspect` also what is SUSPECT and worse. An ADDED op into which
    others were renamed or fused does not, nor do ADDED shapes of what is no larger in all.

    Exit codes: 0; 1 something fails; 3 the sides are never judged, however many runs there are; 4 one run against one
    without a yardstick, or a suspicion that `any` leaves to the next runs (`new`: of the step), or nothing that could
    be told.
    """
    check_words("gate", (word,), FAIL_ON)
    judgement = diff.judgement
    if judgement is None or not judgement.judged:
        never = judgement is None or judgement.refusal == INCOMPARABLE
        because = "nothing was judged" if judgement is None else judgement.sentences[0].rstrip(".")
        return Gate(word, EXIT_NOT_COMPARABLE if never else EXIT_TOO_LITTLE_DATA, because)
    rows = {(row.section, row.key): _under(row, word, known) for row in _judged(diff)}
    found = list(rows.values())
    if word == "new" and diff.options.op is None:
        net_share = _net_share(found)
        found = found if net_share is None else without_small_losses(found, net_share, _OF_TIME, net_loss)
    return decided(word, found, nothing=_NOTHING)


def _net_share(rows: Sequence[GatedRow]) -> float | None:
    """The net loss of operators, as a part of the step: of what became worse without being known, and of what became
    better; None where the step is not among the rows.
    """
    steps = [max(row.baseline or 0.0, row.candidate or 0.0) for row in rows if row.key in (_STEP, _E2E)]
    if not steps or not steps[0]:
        return None
    better = (rule.IMPROVED, rule.REMOVED)
    for kind in _LEAVES:
        own = [
            row
            for row in rows
            if row.key[0] == kind and row.remark != _REPLACED and (row.outcome == "failed" or row.verdict in better)
        ]
        if any(row.outcome == "failed" for row in own):
            return sum(row.delta for row in own) / steps[0]
    return 0.0


def _under(row: GatedRow, word: str, known: Sequence[Known]) -> GatedRow:
    """The row with its outcome under `word`."""
    if row.outcome == "suspect" and word == "suspect":
        return replace(row, outcome="failed")
    if row.outcome == "failed" and word == "new":
        same = next((one for one in known if one.covers(row)), None)
        return row if same is None else replace(row, outcome="known", remark=f"known: finding {same.finding_id}")
    return row


def _judged(diff: Diff) -> list[GatedRow]:
    """All that was judged, with its outcome under `any`."""
    found: list[GatedRow] = []
    renamed = {name for rename in diff.explanation.renames if not rename.is_worse for name in rename.names}
    for section, table_name in _TABLES.items():
        if diff.options.only and section not in diff.options.only:
            continue
        table = diff.tables[table_name]
        rows = [dict(zip(table.arrays, row, strict=True)) for row in table.rows(*table.arrays)]
        if section == "operator" and not diff.options.module:
            metric = own_time_of(diff.candidate)
            found += [_of_name(cause, metric, renamed) for cause in diff.explanation.findings if _is_asked(cause, diff)]
        sizes = _sizes(rows)
        found += [_row(row, section, diff, renamed, sizes) for row in rows if row["verdict"] is not None]
    # where there are steps, the time of the whole capture says the same again
    steps = any(row.key == _STEP for row in found)
    return [row for row in found if not (steps and row.key == _E2E)]


def _is_asked(cause: Cause, diff: Diff) -> bool:
    return cause.kind == "name" and (diff.options.op is None or fnmatchcase(cause.name, diff.options.op))


def _of_name(cause: Cause, metric: str, renamed: set[str]) -> GatedRow:
    """All shapes of an op together."""
    verdict, times = cause.verdict or "", (cause.baseline_ns, cause.candidate_ns)
    why = _REPLACED if cause.name in renamed else ""
    outcome = _outcome(verdict, None, cause.delta_ns > 0, why)
    key = ("op_name", metric, cause.name, "", "")
    return GatedRow("operator", cause.name, "", verdict, outcome, "ns", *times, _ratio(*times), cause.q, why, key)


def _ratio(before: float | None, after: float | None) -> float | None:
    return None if not before or after is None else after / before - 1


def _row(row: Row, section: str, diff: Diff, renamed: set[str], sizes: Mapping[str, tuple[float, float]]) -> GatedRow:
    key, detail = _key(row, section, diff)
    unit = str(row.get("unit") or ("bytes" if section == "memory" else "ns"))
    of = {"overall": "value", "memory": "bytes"}.get(section, "ns")
    name = str(row.get("title") or row.get("kind") or row.get("module") or row.get("name") or row.get("phase"))
    if unit == "count" and row.get("metric") == "samples_per_second":
        unit = "per_second"
    why = _no_news(row, section, renamed, sizes)
    worse = _is_worse(row, unit)
    verdict, calls = str(row["verdict"]), row["calls_verdict"]
    outcome = _outcome(verdict, calls, worse, why)
    word = f"{verdict}{_MORE_CALLS}" if outcome == "failed" and calls == rule.REGRESSED else verdict
    return GatedRow(
        section, name, detail, word, outcome, unit, row[f"baseline_{of}"], row[f"candidate_{of}"], row["judged_diff"],
        row["q"], why or str(row["reason"] or ""), key, _ratio(row.get("baseline_calls"), row.get("candidate_calls")),
    )  # fmt: skip


def _key(row: Row, section: str, diff: Diff) -> tuple[Key, str]:
    """The series of a row, and what tells it from others of its name."""
    shapes = str(row.get("input_shapes") or "")
    if section == "overall":
        metric = str(row["metric"])
        return ("run", FIELD_OF.get(metric, metric), "", "", ""), ""
    if section == "communication":
        part = part_of_collective(row["group_role"], row["size_class_bytes"])
        return ("communication", "total_ns", row["kind"], "", part), part
    if section == "module":
        return ("module", own_time_of(diff.candidate), row["module"], "", row["phase"]), row["phase"]
    if section == "api":
        return ("api", "self_ns", row["name"], "", row["level"]), row["level"]
    if section == "operator":
        kind = "op_name" if diff.options.match == "name" else "op"
        return (kind, own_time_of(diff.candidate), row["name"], shapes, ""), shapes
    return (section, {"memory": "bytes"}.get(section, "total_ns"), row["name"], shapes, ""), shapes


def _is_worse(row: Row, unit: str) -> bool:
    """Which way a change goes, where the verdict does not say."""
    if row.get("status") in (ADDED, REMOVED):
        return bool(row["status"] == ADDED)
    diff = row["judged_diff"]
    if diff is None:
        return (row.get("candidate_calls") or 0.0) > (row.get("baseline_calls") or 0.0)
    return bool(diff < 0) if unit == "per_second" else bool(diff > 0)


def _outcome(verdict: str, calls: str | None, worse: bool, why: str) -> Outcome:
    """Under `any`; `why`: a reason for which it is no news."""
    if why:
        return "passed"
    if verdict in (rule.REGRESSED, rule.ADDED) or (calls == rule.REGRESSED and verdict != rule.IMPROVED):
        return "failed"
    if worse and rule.SUSPECT in (verdict, calls):
        return "suspect"
    return "unsure" if verdict in (rule.INCONCLUSIVE, rule.TOO_FEW_RUNS) else "passed"


def _sizes(rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """Of every name of which some rows came and some went: the sum of all its rows on either side."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("name") is not None and "input_shapes" in row:
            by_name.setdefault(str(row["name"]), []).append(row)
    of = "bytes" if rows and "baseline_bytes" in rows[0] and "baseline_ns" not in rows[0] else "ns"
    return {
        name: (sum(row[f"baseline_{of}"] or 0.0 for row in own), sum(row[f"candidate_{of}"] or 0.0 for row in own))
        for name, own in by_name.items()
        if {ADDED, REMOVED} <= {row["status"] for row in own}
    }


def _no_news(row: Row, section: str, renamed: set[str], sizes: Mapping[str, tuple[float, float]]) -> str:
    """Why something that came is none; "" where it is, or was there before."""
    if section == "operator" and row["name"] in renamed:
        return _REPLACED
    if row.get("status") != ADDED:
        return ""
    if section in ("memory", "kernel") and (row["name"] in renamed or row.get("op") in renamed):
        return _REPLACED
    before, after = sizes.get(str(row.get("name")), (0.0, math.inf))
    return "other shapes of what is no larger in all" if after <= _SAME_SIZE * before else ""


def known_before(store: Store | None, diff: Diff) -> tuple[Known, ...]:
    """The regressions of the candidate's line that were open, or had been accepted, when the candidate came. What is
    worse now than then is news, and what the baseline has already: that it is still there, and worse than itself.

    Against the very runs that a version was judged by, nothing is of the baseline: a series with an open regression is
    judged by older runs of its own.

    Empty without a database, for paths, and where nothing was judged.
    """
    sides = diff.baseline, diff.candidate
    judgement = diff.judgement
    if store is None or judgement is None or not judgement.judged or any(side.workload == FILES for side in sides):
        return ()
    workload = diff.candidate.workload
    order = queries.order_of_versions(store, workload)
    newest, first = (
        pick(order[label] for _, label in queries.labels_of(store, side.run_ids).values())
        for pick, side in ((max, diff.baseline), (min, diff.candidate))
    )
    with store.connect() as connection:
        lines = judged.lines(connection, diff.candidate.run_ids)
        runs = judged.runs_of(connection, lines[0])
        kept = kept_version(connection, lines[0], diff.candidate.run_ids)
    own_window = kept is not None and kept.baseline == {*diff.baseline.run_ids}
    place = sum(order[run.version] < first for run in runs)
    rows = known_at(store, lines[0], runs, place)
    return tuple(known_of(row) for row in rows if own_window or order[row["version"]] > newest)


def known_of(row: Row) -> Known:
    """A finding, a row of sql/line_findings.sql, as what is known of its series."""
    before, after = row["baseline_calls"], row["candidate_calls"]
    calls = math.log(after / before) if pd.notna(before) and pd.notna(after) and min(before, after) > 0 else None
    more_calls = calls is not None and calls > 0
    most_calls = None if calls is None else _grown(max(calls, 0.0))
    return Known(int(row["finding_id"]), key_of_finding(row), _largest(row), row["change"], more_calls, most_calls)


def _largest(row: Row) -> float | None:
    """Beyond it a finding has become worse (JUDGEMENT 6)."""
    if row["change"] == "presence" or pd.isna(row["ratio"]):
        return None
    return _grown(abs(math.log1p(row["ratio"])))


def _grown(size: float) -> float:
    life = LifeRule()
    return size + max(life.effect, life.worse_share * size)
