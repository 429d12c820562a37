"""Writing runs: one transaction per call, idempotent by content digest, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, text

from tracker.errors import UsageError
from tracker.profile import Capture, Device
from tracker.store import awaited_ranks, completing, documents, labels
from tracker.store import captures as stored_captures
from tracker.store.connect import Store
from tracker.store.failures import Raced
from tracker.store.run_matching import Home, place_run
from tracker.store.run_record import Incoming, RunRecord, incoming_of, without_known
from tracker.store.sql import statement
from tracker.store.tracks import judge_again, list_tracks

_NEW_RULES = text("UPDATE run SET rules_version = :rules_version WHERE id = :run_id")
_NEW_WINDOW = text(
    "UPDATE run SET started_at_ns = (SELECT MIN(c.started_at_ns) FROM capture AS c WHERE c.run_id = :run_id), "
    "ended_at_ns = (SELECT MAX(c.ended_at_ns) FROM capture AS c WHERE c.run_id = :run_id) WHERE id = :run_id"
)


class SavedRun(Struct, frozen=True):
    """Where captures went: a run that was `created`, one that they `joined`, or one that had them `already`; or whose
    dropped details they `restored`.

    `device`, `ranks`: of that run as it is stored now, whatever was asked for and with the ranks that were there.
    """

    run_id: int
    created: bool
    joined: bool
    already: bool
    device: Device
    ranks: tuple[int, ...]
    restored: bool = False
    beside: int | None = None
    """Of a run that was created: another one that ran at the same time, where nothing says whether the two are one
    job.
    """
    renewed: bool = False
    """Whether it has another cycle of its process now."""
    document_of: int | None = None
    """The run that it is another source of, as a timer log is of a trace."""
    documented: bool = False
    """Whether another source of it came."""
    waits: bool = False
    """Whether ranks came to it, and it waits for others."""
    notes: tuple[str, ...] = ()
    """What to know of it: where its files state more or less than others, and how they found their run."""


def save_run(store: Store, record: RunRecord, captures: Sequence[Capture], *, formats: Sequence[str]) -> SavedRun:
    """Save the captures of one run; see `save_runs`. `formats`: the format of each capture's files, or one for all."""
    return save_runs(store, [(record, captures, formats)])[0]


def save_runs(
    store: Store,
    batch: Sequence[tuple[RunRecord, Sequence[Capture], Sequence[str]]],
    *,
    again: bool = False,
    document_of: Mapping[int, int] | None = None,
    joins_documents: bool = False,
) -> list[SavedRun]:
    """Save runs, all in one transaction: (record, captures with `rows`, their formats) each.

    Captures whose files are in already change nothing, unless `again`: then they take the place of what is stored of
    them, the run keeps its number and what people said of it, and a file that is not in is a UsageError. Under another
    version or workload, or in a deleted run, they are a UsageError that names the command to solve it. Captures with
    new ranks join a run of the same workload, configuration, version, device, world size and job (where both are
    known) whose capture window overlaps theirs, also on another clock; otherwise they are a new run. Another cycle of a
    stored process is of its run, of which the longest counts.

    `document_of`: place of a run in the batch -> that of the run of which it is another source: it is excluded, and its
    step becomes a series of that run. `joins_documents`: so it is with what is stored, where folder, version and job
    say so.
    """
    values: dict[tuple[str, str], set[str]] = {}
    for record, _, _ in batch:
        for key, value in record.configuration.items():
            values.setdefault((record.workload, key), set()).add(value)
    runs = [
        replace(
            incoming_of(record, captures, formats, again=again),
            beside={key: values[record.workload, key] for key in record.configuration},
        )
        for record, captures, formats in batch
    ]
    given = dict(document_of or {})
    return store.transact(
        lambda connection: _save_all(connection, runs, store.settled_ns, given, joins_documents=joins_documents)
    )


def _save_all(
    connection: Connection,
    runs: Sequence[Incoming],
    settled_ns: int,
    document_of: Mapping[int, int],
    *,
    joins_documents: bool,
) -> list[SavedRun]:
    homes: list[Home] = []
    to_load: list[stored_captures.Placed] = []
    for incoming in runs:
        fresh = without_known(connection, incoming)
        if incoming.again and fresh.captures:
            raise _changed(fresh.captures[0])
        _make_room(connection, fresh.pruned)
        to_load += fresh.pruned
        if not fresh.captures:
            homes.append(Home(min(fresh.run_ids), "restored" if fresh.pruned else "already"))
            if incoming.again:
                values = {"run_id": min(fresh.run_ids), "rules_version": incoming.record.rules_version}
                connection.execute(_NEW_RULES, values)
                # the same runs, recorded alike, and yet other numbers
                judge_again(connection, min(fresh.run_ids))
            continue
        home = place_run(connection, fresh, to_load)
        homes.append(home)
        _make_room(connection, home.replaced)
        to_load += (*home.fresh, *home.replaced)
    is_again = any(incoming.again for incoming in runs)
    came: dict[int, set[int]] = {}
    for item in to_load:
        came.setdefault(item.run_id, set()).add(item.rank)
    for run_id in sorted(came):
        # ranks that come at once from several machines: the later one must find the calls of the others
        labels.hold_run(connection, run_id)
    regrouped = stored_captures.write_captures(connection, to_load)
    for item in (item for home in homes for item in home.replaced):
        connection.execute(_NEW_WINDOW, {"run_id": item.run_id})
    # what became a document of a run gives that run a series more
    run_ids = {home.run_id for home in homes}
    grown = _mark_documents(connection, homes, document_of, joins_documents=joins_documents)
    main_of = documents.mains_of(connection, run_ids)
    mains = grown | {main_of[run_id] for run_id in run_ids & main_of.keys() if run_id in came or is_again}
    for run_id in sorted(mains):
        labels.hold_run(connection, run_id)
        # the same runs, recorded alike, and yet other numbers
        judge_again(connection, run_id)
    _note_ranks_that_came(connection, runs, homes, settled_ns)
    waiting = completing.take_in(connection, came, documented=mains, regrouped=regrouped, at_hand=to_load)
    saved = [_saved(connection, home, main_of.get(home.run_id), documented=home.run_id in grown) for home in homes]
    return [replace(one, waits=one.run_id in waiting) for one in saved]


def _mark_documents(
    connection: Connection, homes: Sequence[Home], document_of: Mapping[int, int], *, joins_documents: bool
) -> set[int]:
    """Mark the runs that are other sources of a run; return the runs that got one more, held to the end."""
    main_of = {homes[document].run_id: homes[main].run_id for document, main in document_of.items()}
    if joins_documents:
        # what lies beside a run was found with its first rank, or with itself
        found = documents.find_beside(connection, {home.run_id for home in homes if home.how != "joined"})
        main_of = {**found, **main_of}
    for main in sorted({*main_of.values()}):
        labels.hold_run(connection, main)
    return documents.mark(connection, main_of)


def _note_ranks_that_came(
    connection: Connection, runs: Sequence[Incoming], homes: Sequence[Home], settled_ns: int
) -> None:
    """Note which of the runs that ranks came to wait for others now."""
    handed_over: dict[int, int | None] = {}
    for incoming, home in zip(runs, homes, strict=True):
        if home.fresh:
            known = handed_over.get(home.run_id) or 0
            handed_over[home.run_id] = max(known, incoming.record.ranks_handed_over or 0) or None
    awaited_ranks.note_arrival(connection, handed_over)
    for track_key in list_tracks(connection, handed_over):
        outdated = awaited_ranks.list_outdated(connection, track_key, settled_ns)
        # other runs of the track are looked at when it is judged: another process may be writing to them now
        own = {run_id: ranks for run_id, ranks in outdated.items() if run_id in handed_over}
        awaited_ranks.write_awaited(connection, own)


def _changed(capture: Capture) -> UsageError:
    path = capture.sources[0].path
    return UsageError(
        f"{path} has another content than when it was ingested",
        remedy="put the file back, or ingest the new one as a run of its own",
    )


def _saved(connection: Connection, home: Home, document_of: int | None, *, documented: bool) -> SavedRun:
    rows = connection.execute(statement("run_ranks"), {"run_id": home.run_id}).all()
    if not rows:  # purged since its files were found
        raise Raced
    return SavedRun(
        home.run_id,
        created=home.how == "created",
        joined=home.how == "joined" and bool(home.fresh),
        renewed=bool(home.replaced),
        already=home.how == "already" and not documented,
        document_of=document_of,
        documented=documented and home.how != "created",
        restored=home.how == "restored",
        beside=home.beside,
        notes=home.notes,
        device=Device(rows[0].vendor, rows[0].model),
        ranks=tuple(row.rank for row in rows),
    )


def _make_room(connection: Connection, pruned: Sequence[stored_captures.Placed]) -> None:
    """Forget what is left of captures that come in whole again."""
    for item in pruned:
        # what is written again; of a pruned capture only the first and the last of them have rows
        for table in (*stored_captures.DETAIL_TABLES, "capture"):
            values = {"run_id": item.run_id, "rank": item.rank}
            # the names are those above
            connection.execute(text(f"DELETE FROM {table} WHERE run_id = :run_id AND rank = :rank"), values)  # noqa: S608
