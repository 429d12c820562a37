"""Keeps `diff_history` true: the verdicts of every version that rests on other runs, or words of users, than before.

What a version rests on is known by a fingerprint, so that an ingest, an edit of runs, another order of versions or
another pin touches no more than it changes, and doing it again changes nothing. Against the accepted runs before it a
version is judged by following the line (`keep`); against the pinned one and the best level it is judged here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from sqlalchemy import Connection

from tracker.detectors import rule
from tracker.detectors.creep import WINDOW
from tracker.judgement.apart import are_there, write_apart
from tracker.judgement.basis import Task, basis_of, stale, tasks
from tracker.judgement.best import compare_with_best, shared_factor
from tracker.judgement.families import RUN
from tracker.judgement.follow import WatchedRun, jumping_rows
from tracker.judgement.judging import Compared, Values, compare, step_of
from tracker.judgement.keep import Followed, SeriesVerdicts, before_of, fingerprint_of, keep
from tracker.judgement.reading import Read
from tracker.judgement.recorded import one_per_key, split_runs
from tracker.judgement.stored import numbers_of
from tracker.lazy import pd
from tracker.profile import known_medians
from tracker.store import Store, bulk, judged, judgements
from tracker.store.bulk import Column
from tracker.store.judged import JudgedVersion, Line, LineRun


class _Todo(Struct, frozen=True):
    """A version to be judged. `stored`: the fingerprint of the judgement that is there; `rests_on`: what stands for the
    whole line, see `fingerprint_of`; read in this order.
    """

    task: Task
    stored: bytes | None
    rests_on: bytes


class _Made(Struct, frozen=True):
    """How a version was judged: `rows` of `diff_history`, see `judgements.write`."""

    todo: _Todo
    result: JudgedVersion
    rows: list[Column]


def lines_of(store: Store, run_ids: Iterable[int] | None = None, workload: str | None = None) -> list[Line]:
    """The lines of these runs, or all lines of a workload, or of all."""
    with store.connect() as connection:
        return judged.lines(connection, run_ids, workload)


def update(store: Store, lines: Iterable[Line]) -> int:
    """Judge what is out of date in these lines, and follow their findings; how many versions were judged.

    Runs without samples get them first. Every version is a transaction of its own, which only writes: what is
    interrupted goes on the next time.
    """
    count, wanted = 0, list(dict.fromkeys(lines))
    for line in wanted:
        count += update_line(store, line, now_ns=time.time_ns())
    return count


def update_line(store: Store, line: Line, *, now_ns: int) -> int:
    """`update` for one line, at a time."""
    with store.connect() as connection:
        known = judged.judged_of(connection, line)  # before what it rests on; see `Before`
        before = before_of(connection, line)
    for run in before.basis.runs:
        if run.stale:
            store.transact(partial(judgements.make_samples, run_id=run.run_id))
    gone = known.keys() - {run.version_id for run in before.basis.runs}
    late = stale(before.basis, known)
    followed = keep(store, line, now_ns=now_ns, wanted=[task.version.version_id for task in late], before=before)
    count = 0
    for task in late:
        number = task.version.version_id
        at_hand = [_Todo(task, known[number].fingerprint if number in known else None, before.fingerprint)]
        make = partial(_make, followed=followed, version_id=number, at_hand=at_hand)
        count += write_apart(store, line, make, _holds, _write)
    for version_id in sorted(gone):
        store.transact(partial(_forget, line=line, version_id=version_id))
    return count


def _make(
    connection: Connection, line: Line, followed: Followed, version_id: int, at_hand: list[_Todo]
) -> _Made | None:
    """The judgement of one version; None where somebody else made it, or changed meanwhile what it rests on, and judges
    next. `at_hand`: what there is to do as it was read before, for the first attempt.
    """
    todo = at_hand.pop() if at_hand else None
    if todo is None or todo.rests_on != followed.fingerprint:
        todo = _todo(connection, line, version_id)
    if todo is None or todo.rests_on != followed.fingerprint or version_id not in followed.verdicts:
        return None
    task = todo.task
    if todo.stored == task.fingerprint:
        return None
    own = followed.verdicts[version_id]
    # with samples of its own: those of all versions together would fill the memory
    read = Read(followed.read.series, dict(followed.read.arrays))
    rows = judge_task(connection, line, task, own, read)
    result = JudgedVersion(
        task.version.version_id,
        task.fingerprint,
        rule.RULE_VERSION,
        task.previous.version_id if task.previous else None,
        numbers_of(run.run_id for run in task.version.runs),
        own.baseline_runs or None,
        task.pinned.version_id if task.pinned else None,
        own.centre,
    )
    return _Made(todo, result, rows)


def _todo(connection: Connection, line: Line, version_id: int) -> _Todo | None:
    """What there is to judge of a version now; None where it has no runs."""
    stored, basis = judged.fingerprint_of(connection, line, version_id), basis_of(connection, line)
    task = next((task for task in tasks(basis) if task.version.version_id == version_id), None)
    return None if task is None else _Todo(task, stored, fingerprint_of(basis))


def _holds(connection: Connection, line: Line, made: _Made) -> bool:
    runs = [run for side in made.todo.task.sides for run in side.runs]
    stored = judged.fingerprint_of(connection, line, made.result.version_id)
    return stored == made.todo.stored and are_there(connection, line, runs)


def _write(connection: Connection, line: Line, made: _Made) -> None:
    judgements.write(connection, line, made.result, made.rows)


def _forget(connection: Connection, line: Line, version_id: int) -> None:
    """Forget how a version was judged, unless it has runs again."""
    judgements.lock(connection, line)
    if version_id not in {run.version_id for run in judged.runs_of(connection, line)}:
        judgements.forget(connection, line, version_id)


def judge_task(connection: Connection, line: Line, task: Task, own: SeriesVerdicts, read: Read) -> list[Column]:
    """The rows of `diff_history` of a version; `own`: how it was judged against the runs before it. `read`: what was
    read of the line before.
    """
    if task.previous is None and task.pinned is None:
        return []
    series = read.series_of(connection, line)
    sides = [*task.before, task.version, *([task.pinned] if task.pinned and task.pinned not in task.before else [])]
    runs = [run for side in sides for run in side.runs]
    columns = {
        side.version_id: [at for at, run in enumerate(runs) if run.version_id == side.version_id] for side in sides
    }
    values, calls = judged.values_of(connection, [run.run_id for run in runs], series, read.arrays)
    there = np.asarray(~np.isnan(values).all(axis=1))  # a line keeps the series of all its versions
    keys = [key for key, known in zip(series.keys, there.tolist(), strict=True) if known]
    values, calls = values[there], calls[there]
    made = split_runs(connection, keys, values, calls, [run.run_id for run in runs])
    known = Values.of_split(made)
    candidate = columns[task.version.version_id]
    table = pd.DataFrame({"series_id": series.ids[there][made.origin]})
    table["value"], table["calls"] = (known_medians(part[made.origin][:, candidate]) for part in (values, calls))
    table["runs"] = (~np.isnan(values[:, candidate])).sum(axis=1)[made.origin]
    keep = _add_own(table, own)
    if task.pinned is None:
        _add_nothing(table, "pinned")
    else:
        keep |= _add(table, "pinned", _compared(known, columns[task.pinned.version_id], candidate, runs, task))
    _add_best(table, known, [columns[side.version_id] for side in task.before], candidate, task)
    if made.is_split:
        judged_by = table["baseline_verdict"].where(table["baseline_verdict"].notna(), table["pinned_verdict"])
        chosen = one_per_key(made, candidate, [None if pd.isna(word) else word for word in judged_by])
        table, keep = table.iloc[chosen], keep[chosen]
    return _rows(table[keep].sort_values("series_id"))


def _add_own(table: pd.DataFrame, own: SeriesVerdicts) -> NDArray[np.bool_]:
    """The columns of the judgement against the runs before; which of its series are large enough to be kept."""
    ids = table["series_id"].to_numpy()
    place = np.minimum(np.searchsorted(own.ids, ids), len(own.ids) - 1)
    known = own.ids[place] == ids
    for column, values in own.columns.items():
        name = column if column in ("detectable", "reason", "calls_verdict", "large") else f"baseline_{column}"
        missing = np.nan if values.dtype == np.float64 else False if values.dtype == np.bool_ else None
        table[name] = np.where(known, values[place], missing)
    said = np.array([word is not None for word in table["baseline_verdict"]], dtype=bool)
    return np.asarray(table["large"].to_numpy(dtype=bool) & said)


def _compared(
    known: Values, baseline: Sequence[int], candidate: Sequence[int], runs: Sequence[LineRun], task: Task
) -> Compared:
    """The judgement of a version against another one. What jumps between two levels in the runs before it, as a diff
    says it, is INCONCLUSIVE. `runs`: what the columns of `known` are, those of the versions before the task's first.
    """
    judge = partial(
        compare,
        known,
        baseline,
        candidate,
        device_timed=[runs[at].timeline == "device" for at in candidate],
        thresholds=task.limits,
    )
    compared = judge()
    if not compared.changed:
        return compared
    jumps = jumping_rows(
        known, compared.changed, _past(task), candidate, baseline,
        device_timed=all(runs[at].timeline == "device" for at in candidate), thresholds=task.limits,
    )  # fmt: skip
    return judge(unclear=jumps) if jumps else compared


def _past(task: Task) -> list[WatchedRun]:
    """The runs of the versions before that of a task, as they are followed."""
    return [
        WatchedRun(run.run_id, place, run.started_at_ns, run.timeline == "device")
        for place, side in enumerate(task.before)
        for run in side.runs
    ]


def _add(table: pd.DataFrame, name: str, compared: Compared) -> NDArray[np.bool_]:
    """The columns of one comparison; which of its series are large enough, or changed enough, to be kept."""
    found = compared.columns
    for column in ("diff", "p", "q", "contribution", "verdict"):
        table[f"{name}_{column}"] = found[column]
    return np.asarray(found["large"] & ~pd.isna(found["verdict"]), dtype=bool)


def _add_nothing(table: pd.DataFrame, name: str) -> None:
    for column in ("diff", "p", "q", "contribution"):
        table[f"{name}_{column}"] = np.nan
    table[f"{name}_verdict"] = None


def _add_best(
    table: pd.DataFrame, known: Values, before: Sequence[Sequence[int]], candidate: Sequence[int], task: Task
) -> None:
    """The columns of the comparison with the best level before; only times creep."""
    for column in ("diff", "p", "q"):
        table[f"best_{column}"] = np.nan
    table["best_verdict"], table["best_version_id"] = None, np.nan
    leaves = known.leaves
    if len(before) < WINDOW or not leaves:
        return
    shared = sum((shared_factor(known.values[known.of(leaf)]) for leaf in leaves), np.zeros(known.values.shape[1]))
    ids = np.array([side.version_id for side in task.before])
    step = step_of(known, candidate, candidate)
    for family in dict.fromkeys(known.families):
        if not family[1].endswith("_ns") or family[0] == RUN or np.isnan(step):
            continue
        rows = known.of(family)
        limits, step_ratio = task.limits.creep(family, [known.names[row] for row in rows])
        found, best = compare_with_best(
            known.values[rows], before, candidate, shared, step, limits=limits, step_ratio=step_ratio
        )
        there = best >= 0
        for column, of in (("diff", "ratio"), ("p", "p"), ("q", "q"), ("verdict", "verdict")):
            table.loc[rows[there], f"best_{column}"] = found[of][there]
        table.loc[rows[there], "best_version_id"] = ids[best[there]]


def _rows(table: pd.DataFrame) -> list[Column]:
    """The columns of `diff_history`, as the database takes them."""
    columns = [
        bulk.integers("series_id", table["series_id"].to_numpy()),
        bulk.floats("value", table["value"].to_numpy()),
        bulk.floats("calls", table["calls"].to_numpy()),
        Column("runs", "short", table["runs"].tolist()),
    ]
    for name in ("baseline", "pinned", "best"):
        columns += [
            bulk.floats(f"{name}_{of}", table[f"{name}_{of}"].to_numpy(dtype=float)) for of in ("diff", "p", "q")
        ]
        columns.append(Column(f"{name}_verdict", "text", _words(table[f"{name}_verdict"])))
    for name in ("baseline", "pinned"):
        columns.append(bulk.floats(f"{name}_contribution", table[f"{name}_contribution"].to_numpy(dtype=float)))
    columns.append(bulk.floats("detectable", table["detectable"].to_numpy(dtype=float)))
    columns += [Column(name, "text", _words(table[name])) for name in ("calls_verdict", "reason")]
    best = [None if np.isnan(number) else int(number) for number in table["best_version_id"].astype(float)]
    columns.append(Column("best_version_id", "int", best))
    return columns


def _words(column: pd.Series) -> list[str | None]:
    return [str(word) if isinstance(word, str) and word else None for word in column.tolist()]
