"""Why: the cause of a finding in words, operators that took the place of others, and what else changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from tracker.columns import Columns
from tracker.detect import DEFAULTS
from tracker.detect.series import NO_OPERATORS
from tracker.profile import OF_A_RUN, OF_THE_CODE
from tracker.regressions.replacements import (
    CallingContexts,
    OperatorChange,
    Replacement,
    find_replacements,
    main_names,
    name_likeness,
    pair_kernels,
)
from tracker.regressions.track import TrackRuns
from tracker.results import CONFIRMED_STATES, REPLACED_BY, TOP_LEVEL
from tracker.results.verdicts import ALIKE_CAUSE, MAYBE_CAUSES
from tracker.schema.series import IDLE_SERIES, KINDS
from tracker.store import Store, queries
from tracker.units import some_of

Row = dict[str, Any]
_SAME_TIME: Final = 0.10
"""By how much what came may differ from what went, to be called the same work under another name."""

_NEW_SHAPES: Final = 0.5
"""Part of the change of an operator that new shapes of it must make to be its cause."""

_COUNTED: Final = frozenset(kind.word for kind in KINDS if kind.is_called)
_OF_RUN: Final = {
    "data loading": "data loading", "peak memory": "memory", "idle time": "idle time",
    "exposed communication": "communication",
}  # fmt: skip


def cause_words(before: float, after: float, calls_before: float, calls_after: float) -> tuple[str, float, float]:
    """Say what changed an operator: the word, and its change (ns per step) by calls and by time per call; both add up.

    Change = calls gained x old time per call + new calls x change of the time per call. The larger part names it.

    >>> cause_words(100.0, 200.0, 10.0, 20.0)
    ('more calls', 100.0, 0.0)
    >>> cause_words(100.0, 130.0, 10.0, 10.0)[0], cause_words(0.0, 5.0, 0.0, 1.0)
    ('slower per call', ('new', 5.0, 0.0))
    """
    if before == 0 or after == 0:
        return ("new" if before == 0 else "gone"), after - before, 0.0
    if not (calls_before > 0 and calls_after > 0):
        return ("slower" if after > before else "faster"), 0.0, after - before
    by_calls = (calls_after - calls_before) * before / calls_before
    by_time = after - before - by_calls
    if abs(by_calls) > abs(by_time):
        return ("more calls" if by_calls > 0 else "fewer calls"), by_calls, by_time
    return ("slower per call" if by_time > 0 else "faster per call"), by_calls, by_time


def mark_cause(row: Row) -> None:
    """Give a finding its cause, a word or two for what changed: "" for the step itself, which others explain; and the
    two parts of its change that add up, by more calls and by slower ones: None for what is not counted.
    """
    counted = row["kind"] in _COUNTED and row["unit"] == "ns"
    is_presence, worse = row["change"] == "presence", row["direction"] == "regression"
    by_calls, per_call = None, None
    if counted and is_presence:
        by_calls, per_call = row["delta"], 0.0
    elif counted and row["baseline_calls"] and row["candidate_calls"]:
        ends = (row[name] for name in ("baseline_value", "candidate_value", "baseline_calls", "candidate_calls"))
        _, by_calls, per_call = cause_words(*ends)
    slower, faster = (
        ("new operator", "operator gone") if is_presence
        else ("more calls", "fewer calls") if abs(by_calls or 0.0) > abs(per_call or 0.0)
        else ("slower communication", "faster communication") if row["kind"] == "communication"
        else ("slower per call", "faster per call")
    )  # fmt: skip
    cause = slower if worse else faster
    if row["kind"] in ("run", "memory"):
        own = row["name"].removeprefix(IDLE_SERIES) if row["name"].startswith(IDLE_SERIES) else ""
        cause = _OF_RUN.get(row["name"], own) if row["kind"] == "run" else "memory"
    if row["change"] == "gradual":
        cause = "gradual slowdown"
    elif row["change"] == "machine":
        cause = "machine-wide drift"
    elif row["change"] == "alike":
        cause = ALIKE_CAUSE
    elif row["change"] in MAYBE_CAUSES:
        cause = MAYBE_CAUSES[row["change"]]
    row |= {"cause": cause, "by_calls": by_calls, "by_time_per_call": per_call}


def find_renamed(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return what may be one operator or kernel under another name: what came with a version, and what went with it.

    Both are alike in name, without namespaces, are called as often, and take about as long.
    """
    pairs = []
    for added, removed in _list_presences(rows):
        for came in added:
            alike = [(_likeness(came, went), went) for went in removed]
            likeness, went = max(alike, key=lambda pair: pair[0], default=(0.0, None))
            if went is not None and likeness > 0:
                pairs.append((came, went))
                removed.remove(went)
    return pairs


def mark_renamed(rows: Sequence[Row], pairs: Iterable[tuple[Row, Row]]) -> None:
    """Mark the `pairs` of `find_renamed`, but for those that are a part of what replaced what, with others, or that
    replaced each other and take longer or shorter.

    Their state is `renamed` where a name alone changed. Where all that is left of a kind sums up to the same time, it
    was renamed or fused.
    """
    members = Counter(row["replaced"]["head"] for row in rows if row["replaced"])
    for came, went in pairs:
        heads = {row["replaced"]["head"] for row in (came, went) if row["replaced"]}
        is_as_long = _is_as_long(came["delta"], -went["delta"])
        if any(members[head] > len((came, went)) for head in heads) or (heads and not is_as_long):
            continue
        came["cause"], went["cause"] = f"renamed, was {went['name']}", f"renamed, is {came['name']}"
        if is_as_long:
            # nothing got slower or faster: an incident would be noise
            for row in (came, went):
                if row["state"] in CONFIRMED_STATES:
                    row |= {"state": "renamed", "is_new": False}
    for added, removed in _list_presences(rows):
        left = [row for row in (*added, *removed) if not row["replaced"] and not row["cause"].startswith("renamed")]
        gains = [row["delta"] for row in left if row["delta"] > 0]
        losses = [-row["delta"] for row in left if row["delta"] < 0]
        if gains and losses and _equal(sum(gains), sum(losses)):
            for row in left:
                row["cause"] = "renamed or fused"


def _list_presences(rows: Sequence[Row]) -> Iterator[tuple[list[Row], list[Row]]]:
    """Yield what came and what went, of each incident and kind, and kind of steps."""
    groups: dict[tuple[Any, ...], tuple[list[Row], list[Row]]] = {}
    for row in rows:
        if row["change"] == "presence" and row["incident_id"] is not None and row["kind"] in _COUNTED:
            added, removed = groups.setdefault((row["incident_id"], row["kind"], row["step_kind"]), ([], []))
            (added if row["direction"] == "regression" else removed).append(row)
    yield from groups.values()


def mark_new_shapes(rows: Sequence[Row]) -> None:
    """Mark operators whose change is mostly in shapes that came or went: no call of before became slower or
    faster by it. `rows`: with what each is under.
    """
    of_shapes: dict[int, float] = {}
    for row in rows:
        if row["change"] == "presence" and row["kind"] == "op" and row["under"] is not None:
            of_shapes[row["under"]] = of_shapes.get(row["under"], 0.0) + (row["delta"] or 0.0)
    for row in rows:
        part = of_shapes.get(row["finding_id"], 0.0)
        if row["change"] != "level" or row["replaced"] or not row["delta"] or part / row["delta"] < _NEW_SHAPES:
            continue
        more = (row["candidate_calls"] or 0) > (row["baseline_calls"] or 0)
        came = "more calls of new shapes" if more else "new shapes"
        row["cause"] = came if row["direction"] == "regression" else "shapes gone"


def _likeness(came: Row, went: Row) -> float:
    """Return how alike two operators are in name, 0 where they are not called as often, or not about as long."""
    calls = came["candidate_calls"] or 0.0, went["baseline_calls"] or 0.0
    if not _equal(*calls) or not _equal(came["delta"], -went["delta"]):
        return 0.0
    return name_likeness(came["name"], went["name"])


def _is_as_long(one: float, other: float) -> bool:
    """Return whether two times differ by less than makes a finding."""
    return abs(one - other) < DEFAULTS.ratio * max(abs(one), abs(other))


def _equal(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME_TIME * max(abs(one), abs(other))


def mark_replaced(store: Store, rows: Sequence[Row], incidents: Collection[int], *, with_invalid: bool = False) -> None:
    """Give the findings of each replacement the key `replaced`: `head`, the finding that stands for it, and the columns
    that this has as the `whole` of it; None for others.

    `rows`: of whole incidents; looked at are those of `incidents`, since where operators are called from takes a while
    to read. `with_invalid`: also false positives.
    """
    groups: dict[tuple[int, str], dict[str, Row]] = {}
    for row in rows:
        row |= {"replaced": None, "is_of_no_operator": False}
        counts = with_invalid or row["state"] != "invalid"
        if counts and row["incident_id"] in incidents and row["kind"] == "op_name" and _change_of(row).has_moved:
            groups.setdefault((row["incident_id"], row["step_kind"]), {})[row["name"]] = row
    for moved in groups.values():
        changes = [_change_of(row) for row in moved.values()]
        if len({change.calls_after > change.calls_before for change in changes}) < 2:
            continue
        run_ids = _list_last_runs(next(iter(moved.values())))
        if len(run_ids) < 2:
            continue
        contexts = [CallingContexts(queries.op_tree(store, [run]), queries.ops(store, [run])) for run in run_ids]
        for replacement in find_replacements(changes, *contexts):
            _mark_replacement(replacement, moved)
    _mark_replaced_kernels(store, [row for row in rows if row["incident_id"] in incidents], with_invalid=with_invalid)


def _mark_replaced_kernels(store: Store, rows: Sequence[Row], *, with_invalid: bool) -> None:
    """Note which findings are of kernels that no operator launched (`is_of_no_operator`), and give those what replaced
    what, too, as a diff groups them.
    """
    groups: dict[int, dict[str, Row]] = {}
    for row in rows:
        counts = with_invalid or row["state"] != "invalid"
        if counts and row["kind"] == "kernel" and not row["input_shapes"]:
            groups.setdefault(row["incident_id"], {})[row["name"]] = row
    for found in groups.values():
        run_ids = _list_last_runs(next(iter(found.values())))
        kinds = _find_kinds_of_work(queries.kernels(store, run_ids))
        changes = []
        for name, row in found.items():
            if name in kinds:
                row["is_of_no_operator"] = True
                changes.append(_change_of(row)._replace(shapes=kinds[name]))
        for replacement in pair_kernels(changes):
            _mark_replacement(replacement, found)


def _find_kinds_of_work(kernels: Columns) -> dict[str, str]:
    """Return kernel -> its category, of those that no operator launched."""
    kinds, of_operators = dict[str, str](), set[str]()
    for name, op, category in kernels.rows("canonical_name", "op", "category"):
        kinds[name] = category
        if op not in NO_OPERATORS:
            of_operators.add(name)
    return {name: category for name, category in kinds.items() if name not in of_operators}


def _list_last_runs(row: Row) -> list[int]:
    """Return the newest run of each side of a finding."""
    return [int(row[side].split()[-1]) for side in ("baseline_runs", "candidate_runs") if row[side]]


def _mark_replacement(replacement: Replacement, moved: Mapping[str, Row]) -> None:
    """Give the findings of a replacement what stands for all of them, and their causes."""
    gone, come = ([moved[one.name] for one in side] for side in (replacement.gone, replacement.come))
    gone_names, come_names = (some_of(main_names([row["name"] for row in side])) for side in (gone, come))
    before, after = replacement.removed_ns, replacement.added_ns
    has_parent = replacement.parent != TOP_LEVEL
    whole = {
        "name": f"{gone_names}{REPLACED_BY}{come_names}", "input_shapes": "", "change": "level",
        "ratio": after / before - 1 if before else None, "baseline_value": before, "candidate_value": after,
        "contribution": sum(row["contribution"] for row in (*gone, *come)), "delta": after - before,
        "verdict": "REGRESSED" if after > before else "IMPROVED",
        "cause": f"replaced under {replacement.parent}" if has_parent else "replaced",
        **dict.fromkeys(("baseline_calls", "candidate_calls", "by_calls", "by_time_per_call")),
    }  # fmt: skip
    head = (come if after > before else gone)[0]["finding_id"]
    for row in (*gone, *come):
        row["replaced"] = {"head": head, "whole": whole}
        row["cause"] = f"replaced by {come_names}" if row in gone else f"replaces {gone_names}"


def _change_of(row: Row) -> OperatorChange:
    """Return the change of a finding of an operator, by name."""
    calls_before, calls_after = row["baseline_calls"] or 0.0, row["candidate_calls"] or 0.0
    return OperatorChange(
        row["name"], row["baseline_value"] or 0.0, row["candidate_value"] or 0.0, calls_before, calls_after
    )


def as_one(row: Row) -> Row:
    """Return a finding as it is shown: one that stands for a replacement as the whole of it, net."""
    of = row["replaced"]
    return row if of is None or of["head"] != row["finding_id"] else row | of["whole"]


def net_contribution(row: Row) -> float:
    """Return the part of the step that a finding changed; of one that stands for a replacement, net."""
    of = row["replaced"]
    if of is None:
        return row["contribution"] or 0.0
    return float(of["whole"]["contribution"]) if of["head"] == row["finding_id"] else 0.0


def changed_between(store: Store, incident: Row) -> list[Row]:
    """Return the facts and profiler settings that no run of one side of an incident shares with one of the other."""
    sides = ("baseline_runs", "candidate_runs")
    side_of = {int(run): side for side in sides for run in incident[side].split()}
    recorded = []
    for run_id, settings, steps in queries.captures(store, list(side_of)).rows("run_id", "settings", "steps"):
        said = queries.settings_of(settings) | {"steps": str(steps)}
        recorded += [(run_id, f"profiler {key}", value) for key, value in said.items()]
    known = _stated(store, side_of, recorded)
    return [
        {"incident_id": incident["incident_id"], "key": key, "before": before, "after": after}
        for key, before, after in differing(*(known.get(side, {}) for side in sides))
    ]


def changes(store: Store, track: TrackRuns) -> list[tuple[str, str, str | None, str | None]]:
    """Return the facts that no run of a version shares with any run of the version before: version, key, and its values
    before and in it.

    Several values of a version join with ` | `; what differs from run to run is no change of the version.
    """
    version_of = {run.run_id: run.version for run in track.runs}
    known = [*_stated(store, version_of).items()]
    return [
        (version, *change) for (_, before), (version, after) in pairwise(known) for change in differing(before, after)
    ]


def _stated(
    store: Store, group_of: Mapping[int, str], more: Iterable[tuple[int, str, str]] = ()
) -> dict[str, dict[str, set[str]]]:
    """Group of runs -> their environment by key, without what names the run and its code. `more`: run, key, value."""
    known: dict[str, dict[str, set[str]]] = {group: {} for group in group_of.values()}
    facts = queries.facts(store, list(group_of), kind="fact").rows("run_id", "key", "value")
    for run_id, key, value in (*facts, *more):
        if key not in OF_A_RUN | OF_THE_CODE:
            known[group_of[run_id]].setdefault(key, set()).add(value)
    return known


def differing(
    before: Mapping[str, set[str]], after: Mapping[str, set[str]]
) -> list[tuple[str, str | None, str | None]]:
    """Return the keys whose values the two sides do not share, with those of each; None for nothing.

    What only one side says is no change where the other one does not know: it counts for settings of the profiler, and
    for a variable of a job that stated its variables.

    >>> differing({"driver": {"535"}}, {"driver": {"550"}, "python_version": {"3.11"}, "NCCL_ALGO": {"Ring"}})
    [('driver', '535', '550')]
    >>> differing({"python_version": {"3.11"}}, {"python_version": {"3.11"}, "NCCL_ALGO": {"Ring"}})
    [('NCCL_ALGO', None, 'Ring')]
    """
    found = []
    for key in sorted(before.keys() | after.keys()):
        one, other = before.get(key, set()), after.get(key, set())
        counts = bool(one and other) or key.startswith("profiler ")
        other_side = after if one else before
        states_variables = "python_version" in other_side or any(name[:1].isupper() for name in other_side)
        if not one & other and (counts or (key[:1].isupper() and states_variables)):
            found.append((key, " | ".join(sorted(one)) or None, " | ".join(sorted(other)) or None))
    return found
