"""Why: the cause of a finding in words, operators that took the place of others, and what else changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import Columns
from tracker.detect import DEFAULTS
from tracker.detect.series import NO_OPERATORS
from tracker.profile import OF_A_RUN, OF_THE_CODE
from tracker.regressions.found import FoundFinding, Replaced
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
from tracker.results.findings import ChangedFact, ListedFinding, ListedIncident
from tracker.results.verdicts import ALIKE_CAUSE, MAYBE_CAUSES
from tracker.schema.column_names import CANONICAL_NAME, CATEGORY, KEY, OP, RUN_ID, SETTINGS, STEPS, VALUE
from tracker.schema.series import IDLE_SERIES, KINDS
from tracker.store import Store, queries
from tracker.units import some_of

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


def with_cause(found: FoundFinding) -> FoundFinding:
    """Return a finding with its cause, a word or two for what changed: "" for the step itself, which others explain;
    and with the two parts of its change that add up, by more calls and by slower ones: None for what is not counted.
    """
    is_counted = found.kind in _COUNTED and found.unit == "ns"
    by_calls, per_call = None, None
    if is_counted and found.change == "presence":
        by_calls, per_call = found.delta, 0.0
    elif is_counted and found.baseline_calls and found.candidate_calls:
        before, after = found.baseline_value or 0.0, found.candidate_value or 0.0
        _, by_calls, per_call = cause_words(before, after, found.baseline_calls, found.candidate_calls)
    cause = _name_cause(found, by_calls, per_call)
    return replace(found, cause=cause, by_calls=by_calls, by_time_per_call=per_call)


def _name_cause(found: ListedFinding, by_calls: float | None, per_call: float | None) -> str:
    """Return the cause of a change in words, of which `by_calls` is by more calls and `per_call` by slower ones."""
    if found.change == "gradual":
        return "gradual slowdown"
    if found.change == "machine":
        return "machine-wide drift"
    if found.change == "alike":
        return ALIKE_CAUSE
    if found.change in MAYBE_CAUSES:
        return f"maybe {MAYBE_CAUSES[found.change]}"
    if found.kind == "memory":
        return "memory"
    if found.kind == "run":
        idle_cause = found.name.removeprefix(IDLE_SERIES) if found.name.startswith(IDLE_SERIES) else ""
        return _OF_RUN.get(found.name, idle_cause)
    if found.change == "presence":
        words = ("new operator", "operator gone")
    elif abs(by_calls or 0.0) > abs(per_call or 0.0):
        words = ("more calls", "fewer calls")
    elif found.kind == "communication":
        words = ("slower communication", "faster communication")
    else:
        words = ("slower per call", "faster per call")
    return words[0] if found.direction == "regression" else words[1]


def find_renamed(rows: Sequence[FoundFinding]) -> list[tuple[int, int]]:
    """Return what may be one operator or kernel under another name: what came with a version, and what went with it,
    both by their place in `rows`.

    Both are alike in name, without namespaces, are called as often, and take about as long.
    """
    pairs = []
    for added, removed in _list_presences(rows):
        left = [*removed]
        for came in added:
            alike = [(_likeness(rows[came], rows[went]), went) for went in left]
            likeness, went = max(alike, key=lambda pair: pair[0], default=(0.0, -1))
            if likeness > 0:
                pairs.append((came, went))
                left.remove(went)
    return pairs


def with_renamed(rows: Sequence[FoundFinding], pairs: Iterable[tuple[int, int]]) -> list[FoundFinding]:
    """Return the rows with the `pairs` of `find_renamed` marked, but for those that are a part of what replaced what,
    with others, or that replaced each other and take longer or shorter.

    Their state is `renamed` where a name alone changed. Where all that is left of a kind sums up to the same time, it
    was renamed or fused.
    """
    marked = [*rows]
    members = Counter(row.replaced.head for row in rows if row.replaced is not None)
    for pair in pairs:
        came, went = (rows[place] for place in pair)
        heads = {row.replaced.head for row in (came, went) if row.replaced is not None}
        is_as_long = _is_as_long(came.delta, -went.delta)
        if any(members[head] > len(pair) for head in heads) or (heads and not is_as_long):
            continue
        causes = (f"renamed, was {went.name}", f"renamed, is {came.name}")
        for place, cause in zip(pair, causes, strict=True):
            marked[place] = replace(rows[place], cause=cause)
            # nothing got slower or faster: an incident would be noise
            if is_as_long and rows[place].state in CONFIRMED_STATES:
                marked[place] = replace(marked[place], state="renamed", is_new=False)
    for added, removed in _list_presences(marked):
        left = []
        for place in (*added, *removed):
            if marked[place].replaced is None and not marked[place].cause.startswith("renamed"):
                left.append(place)
        gains = [marked[place].delta for place in left if marked[place].delta > 0]
        losses = [-marked[place].delta for place in left if marked[place].delta < 0]
        if gains and losses and _equal(sum(gains), sum(losses)):
            for place in left:
                marked[place] = replace(marked[place], cause="renamed or fused")
    return marked


def _list_presences(rows: Sequence[FoundFinding]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield what came and what went, by their places, of each incident and kind, and kind of steps."""
    groups: dict[tuple[int, str, str], tuple[list[int], list[int]]] = {}
    for place, row in enumerate(rows):
        if row.change == "presence" and row.incident_id is not None and row.kind in _COUNTED:
            added, removed = groups.setdefault((row.incident_id, row.kind, row.step_kind), ([], []))
            (added if row.is_worse else removed).append(place)
    yield from groups.values()


def with_new_shapes(rows: Sequence[FoundFinding]) -> list[FoundFinding]:
    """Return the rows with those operators marked whose change is mostly in shapes that came or went: no call of
    before became slower or faster by it. `rows`: with what each is under.
    """
    of_shapes: dict[int, float] = {}
    for row in rows:
        if row.change == "presence" and row.kind == "op" and row.under is not None:
            of_shapes[row.under] = of_shapes.get(row.under, 0.0) + row.delta
    return [_mark_new_shapes(row, of_shapes) for row in rows]


def _mark_new_shapes(row: FoundFinding, of_shapes: Mapping[int, float]) -> FoundFinding:
    """Return a row with its cause, where that is new shapes. `of_shapes`: ns of each finding that are of such."""
    part = 0.0 if row.finding_id is None else of_shapes.get(row.finding_id, 0.0)
    if row.change != "level" or row.replaced is not None or not row.delta or part / row.delta < _NEW_SHAPES:
        return row
    if not row.is_worse:
        return replace(row, cause="shapes gone")
    has_more_calls = (row.candidate_calls or 0) > (row.baseline_calls or 0)
    return replace(row, cause="more calls of new shapes" if has_more_calls else "new shapes")


def _likeness(came: ListedFinding, went: ListedFinding) -> float:
    """Return how alike two operators are in name, 0 where they are not called as often, or not about as long."""
    calls = came.candidate_calls or 0.0, went.baseline_calls or 0.0
    if not _equal(*calls) or not _equal(came.delta, -went.delta):
        return 0.0
    return name_likeness(came.name, went.name)


def _is_as_long(one: float, other: float) -> bool:
    """Return whether two times differ by less than makes a finding."""
    return abs(one - other) < DEFAULTS.ratio * max(abs(one), abs(other))


def _equal(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME_TIME * max(abs(one), abs(other))


class _Mark(Struct, frozen=True):
    """What a finding of a replacement gets: the whole of it, and its own cause."""

    replaced: Replaced
    cause: str


def with_replaced(
    store: Store, rows: Sequence[FoundFinding], incidents: Collection[int | None], *, with_invalid: bool = False
) -> list[FoundFinding]:
    """Return the rows with what replaced what (`replaced`), and with which are of kernels that no operator launched.

    rows: of whole incidents; looked at are those of `incidents`, since where operators are called from takes a while
    to read.
    with_invalid: also false positives.
    """
    marks: dict[int, _Mark] = {}
    groups: dict[tuple[int | None, str], dict[str, int]] = {}
    for place, row in enumerate(rows):
        is_counted = with_invalid or row.state != "invalid"
        if is_counted and row.incident_id in incidents and row.kind == "op_name" and _change_of(row).has_moved:
            groups.setdefault((row.incident_id, row.step_kind), {})[row.name] = place
    for moved in groups.values():
        changes = [_change_of(rows[place]) for place in moved.values()]
        if len({change.calls_after > change.calls_before for change in changes}) < 2:
            continue
        run_ids = _list_last_runs(rows[next(iter(moved.values()))])
        if len(run_ids) < 2:
            continue
        contexts = [CallingContexts(queries.op_tree(store, [run]), queries.ops(store, [run])) for run in run_ids]
        for replacement in find_replacements(changes, *contexts):
            marks |= _mark_replacement(replacement, rows, moved)
    kernels = _list_kernels(store, rows, incidents, with_invalid=with_invalid)
    for changes_of_kernels, moved in kernels:
        for replacement in pair_kernels(changes_of_kernels):
            marks |= _mark_replacement(replacement, rows, moved)
    # a kernel of the group that has no change here was launched by an operator
    of_no_operator = {moved[change.name] for changes_of_kernels, moved in kernels for change in changes_of_kernels}
    marked = []
    for place, row in enumerate(rows):
        with_mark = replace(row, is_of_no_operator=place in of_no_operator)
        if place in marks:
            with_mark = replace(with_mark, replaced=marks[place].replaced, cause=marks[place].cause)
        marked.append(with_mark)
    return marked


def _list_kernels(
    store: Store, rows: Sequence[FoundFinding], incidents: Collection[int | None], *, with_invalid: bool
) -> list[tuple[list[OperatorChange], dict[str, int]]]:
    """Return of each incident the changes of kernels that no operator launched, and the places of all of its kernels
    in `rows`, by name.
    """
    groups: dict[int | None, dict[str, int]] = {}
    for place, row in enumerate(rows):
        is_counted = with_invalid or row.state != "invalid"
        if row.incident_id in incidents and is_counted and row.kind == "kernel" and not row.input_shapes:
            groups.setdefault(row.incident_id, {})[row.name] = place
    found = []
    for moved in groups.values():
        run_ids = _list_last_runs(rows[next(iter(moved.values()))])
        kinds = _find_kinds_of_work(queries.kernels(store, run_ids))
        changes = []
        for name, place in moved.items():
            if name in kinds:
                changes.append(_change_of(rows[place])._replace(shapes=kinds[name]))
        found.append((changes, moved))
    return found


def _find_kinds_of_work(kernels: Columns) -> dict[str, str]:
    """Return kernel -> its category, of those that no operator launched."""
    kinds, of_operators = dict[str, str](), set[str]()
    for name, op, category in kernels.rows(CANONICAL_NAME, OP, CATEGORY):
        kinds[name] = category
        if op not in NO_OPERATORS:
            of_operators.add(name)
    return {name: category for name, category in kinds.items() if name not in of_operators}


def _list_last_runs(row: ListedFinding) -> list[int]:
    """Return the newest run of each side of a finding."""
    return [int(runs.split()[-1]) for runs in (row.baseline_runs, row.candidate_runs) if runs]


def _mark_replacement(
    replacement: Replacement, rows: Sequence[FoundFinding], moved: Mapping[str, int]
) -> dict[int, _Mark]:
    """Return what the findings of a replacement get, by their places. `moved`: the place of all that moved, by name."""
    gone, come = ([rows[moved[one.name]] for one in side] for side in (replacement.gone, replacement.come))
    gone_names, come_names = (some_of(main_names([row.name for row in side])) for side in (gone, come))
    before, after = replacement.removed_ns, replacement.added_ns
    has_parent = replacement.parent != TOP_LEVEL
    whole = Replaced(
        head=(come if after > before else gone)[0].finding_id,
        name=f"{gone_names}{REPLACED_BY}{come_names}",
        ratio=after / before - 1 if before else None,
        baseline_value=before,
        candidate_value=after,
        contribution=sum(row.contribution or 0.0 for row in (*gone, *come)),
        delta=after - before,
        verdict="REGRESSED" if after > before else "IMPROVED",
        cause=f"replaced under {replacement.parent}" if has_parent else "replaced",
    )
    marks = {moved[one.name]: _Mark(whole, f"replaces {gone_names}") for one in replacement.come}
    return marks | {moved[one.name]: _Mark(whole, f"replaced by {come_names}") for one in replacement.gone}


def _change_of(row: ListedFinding) -> OperatorChange:
    """Return the change of a finding of an operator, by name."""
    calls_before, calls_after = row.baseline_calls or 0.0, row.candidate_calls or 0.0
    return OperatorChange(row.name, row.baseline_value or 0.0, row.candidate_value or 0.0, calls_before, calls_after)


def changed_between(store: Store, incident: ListedIncident) -> list[ChangedFact]:
    """Return the facts and profiler settings that no run of one side of an incident shares with one of the other."""
    sides = {"baseline": incident.baseline_runs, "candidate": incident.candidate_runs}
    side_of = {int(run): side for side, runs in sides.items() for run in runs.split()}
    recorded = []
    for run_id, settings, steps in queries.captures(store, list(side_of)).rows(RUN_ID, SETTINGS, STEPS):
        said = queries.settings_of(settings) | {"steps": str(steps)}
        recorded += [(run_id, f"profiler {key}", value) for key, value in said.items()]
    known = _stated(store, side_of, recorded)
    return [
        ChangedFact(incident_id=incident.incident_id, key=key, before=before, after=after)
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
    facts = queries.facts(store, list(group_of), kind="fact").rows(RUN_ID, KEY, VALUE)
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
