"""Files -> captures -> runs in the database, judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tracker import config
from tracker.errors import UsageError
from tracker.intake import contradictions
from tracker.intake.at_once import read_all
from tracker.intake.devices import unnamed
from tracker.intake.documents import find_documents
from tracker.intake.forming import form_runs, formats_beside
from tracker.intake.loading import with_data_loading
from tracker.intake.older_digests import with_stored_digests
from tracker.intake.pieces import IngestOptions, Piece
from tracker.intake.records import HOW_TO_LABEL, date_of, device_of, record_of, with_named_devices
from tracker.intake.sidecar import NOTHING, Sidecar, agreed, over
from tracker.profile import INCOMPLETE_SETTING, Capture
from tracker.profile.branches import branch_of
from tracker.readers import not_recognised_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracker.errors import TrackerError
    from tracker.intake.at_once import All
    from tracker.readers import NotRecognised
    from tracker.store import RunRecord, SavedRun, Store

    SaveRuns = Callable[..., list[SavedRun]]


class IngestResult(Struct, frozen=True):
    """One run as it stands after an ingest. `created`: new; `joined`: ranks came to a run that was there; `already`:
    nothing changed; `restored`: details that were dropped are back; `renewed`: another cycle of its process counts;
    `documents`: other files of the same execution, such as the timer log beside a trace; `documented`: they came to a
    run that was there; `document_of`: the run whose other source this is, itself no run that counts.

    The first result of a call names the files that no reader takes (`not_recognised`), and with `keep_going` why others
    could not be read (`failed`).
    """

    run_id: int
    version: str
    workload: str
    device: str
    ranks: tuple[int, ...]
    steps: int
    created: bool
    joined: bool
    already: bool
    paths: tuple[str, ...]
    formats: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    captures: tuple[Read, ...] = ()
    restored: bool = False
    renewed: bool = False
    documented: bool = False
    document_of: int | None = None
    not_recognised: tuple[NotRecognised, ...] = ()
    failed: tuple[str, ...] = ()


class Read(Struct, frozen=True):
    """One capture of an ingest: its rank, the file or folder that holds it, and what its reader warned of."""

    rank: int
    path: str
    warnings: tuple[str, ...] = ()


def ingest(
    store: Store,
    paths: Sequence[Path],
    *,
    version: str | None = None,
    workload: str | None = None,
    options: IngestOptions | None = None,
) -> list[IngestResult]:
    """Read all profiles under `paths` into `store` as runs of `version`, and say which runs they formed.

    Without `version` or `workload` the sidecars of the files, `options.otherwise` or the files themselves must state
    them; files that state different ones are different runs.
    Everything is read before anything is written; the write is one transaction for all runs of the call, so that a
    bad file leaves the database untouched. Files already in under the same version and workload change nothing; under
    another label they are a UsageError. Runs come in order of the dates of their versions where files state these, then
    of their start. Then the versions that they are of are judged, each in a transaction of its own, unless
    `options.judge` says that the caller does it.
    """
    options = options or IngestOptions()
    save_runs = _ready_to_save(store, options)
    for name, value in (("version", version), ("workload", workload)):
        if value is not None and not value.strip():
            raise UsageError(f"the {name} is empty", remedy=HOW_TO_LABEL[name])
    store.rest()
    find_and_read = options.read_all_with or read_all
    read = find_and_read(list(paths), options)
    pieces = with_stored_digests(store, with_data_loading(read.pieces, options))
    pieces = with_named_devices(pieces, options.device)
    if not pieces and read.failed:
        raise _all_failed(read.failed)
    if not pieces and options.places:
        left = not_recognised_line(read.passed)
        raise UsageError(f"the layout has no profile; {left}", remedy="check --layout and the path")
    formed = [
        (group, _asked(group, version, workload, options))
        for alike in _by_place(pieces, options)
        for group in form_runs(alike, as_run=options.as_run)
    ]
    if options.as_stored and store.is_made:
        formed = [(group, _as_stored(store, group) or asked) for group, asked in formed]
    if version is None:
        formed.sort(key=lambda one: date_of(one[0]))
    formed, document_of = _with_documents_behind(formed, options)
    groups = [_finish(group, asked.options) for group, asked in formed]
    records = _make_records(groups, [asked for _, asked in formed], document_of)
    batch = [
        (record, [piece.capture for piece in group], [piece.format for piece in group])
        for group, record in zip(groups, records, strict=True)
    ]
    runs = [(record, group) for group, record in zip(groups, records, strict=True)]
    contradictions.refuse_copies(runs)
    if not store.is_made:  # else only the store knows which runs are in already, and say no more what a version is
        contradictions.refuse_commits(runs)
    report = options.on_progress or _tell_nobody
    report("writing", 0, 0)
    done = save_runs(store, batch, again=options.again, document_of=document_of, joins_documents=not options.as_run)
    if options.judge:
        report("judging", 0, 0)
        # also what was in already: whoever brought it may have been killed before it was judged
        judge_runs(store, [saved.document_of or saved.run_id for saved in done])
    report("looking for advice", 0, 0)
    _keep_advice(store, done)
    results = [
        _result(group, record, saved, options) for group, record, saved in zip(groups, records, done, strict=True)
    ]
    results = _with_documents(results, document_of)
    apart = [piece for place, group in enumerate(groups) if place not in document_of for piece in group]
    beside = (*read.warnings, *filter(None, [formats_beside(apart)]))
    if results:
        results[0] = replace(
            results[0],
            warnings=(*beside, *results[0].warnings),
            not_recognised=read.passed,
            failed=tuple(str(error) for error in read.failed),
        )
    return results


def _with_documents_behind(
    formed: Sequence[tuple[list[Piece], _Asked]], options: IngestOptions
) -> tuple[list[tuple[list[Piece], _Asked]], dict[int, int]]:
    """Return the runs with the documents of each right behind it, and the place of each document's run."""
    main_of = {} if options.as_run else find_documents([group for group, _ in formed])
    documents_of: dict[int, list[int]] = {}
    for document in sorted(main_of):
        documents_of.setdefault(main_of[document], []).append(document)
    in_order: list[tuple[list[Piece], _Asked]] = []
    document_of: dict[int, int] = {}
    for place in range(len(formed)):
        if place in main_of:
            continue
        new_place = len(in_order)
        in_order.append(formed[place])
        for document in documents_of.get(place, []):
            document_of[len(in_order)] = new_place
            in_order.append(formed[document])
    return in_order, document_of


def _make_records(
    groups: Sequence[Sequence[Piece]], asked: Sequence[_Asked], document_of: Mapping[int, int]
) -> list[RunRecord]:
    """Return what is known of each run as a whole; a document is filed as the run that it is of."""
    records: list[RunRecord] = []
    for place, (group, one) in enumerate(zip(groups, asked, strict=True)):
        if place not in document_of:
            records.append(record_of(group, one.version, one.workload, one.options))
            continue
        main = records[document_of[place]]
        own = record_of(group, main.version, main.workload, one.options)
        of_main = replace(
            own,
            commit=main.commit,
            configuration=main.configuration,
            stated=main.stated,
            device=main.device,
            main_commits=main.main_commits,
            ranks_expected=None,
            ranks_handed_over=None,
        )
        records.append(of_main)
    return records


def _with_documents(results: Sequence[IngestResult], document_of: Mapping[int, int]) -> list[IngestResult]:
    """Return the results of runs, each with the files of its documents and what to know of them."""
    own: dict[int, list[IngestResult]] = {}
    for place, main in document_of.items():
        own.setdefault(main, []).append(results[place])
    found = []
    for place, result in enumerate(results):
        if place in document_of:
            continue
        documents = own.get(place, [])
        warnings = dict.fromkeys([*result.warnings, *(text for one in documents for text in one.warnings)])
        files = tuple(path for one in documents for path in one.paths)
        found.append(replace(result, documents=files, warnings=tuple(warnings)))
    return found


def _tell_nobody(_label: str, _done: int, _total: int) -> None:
    """Stand in where nobody asks how far an ingest is."""


def _by_place(pieces: Sequence[Piece], options: IngestOptions) -> list[list[Piece]]:
    """The pieces by what the layout says of them, which it adds to what lies beside them; one list without a layout."""
    if not options.places:
        return [list(pieces)]
    groups: dict[bytes, list[Piece]] = {}
    for piece in pieces:
        place = Path(piece.place)
        said = next((options.places[one] for one in (place, *place.parents) if one in options.places), NOTHING)
        own = replace(piece, said=over(piece.said or NOTHING, said))
        groups.setdefault(msgspec.json.encode(said, order="deterministic"), []).append(own)
    return list(groups.values())


def _all_failed(errors: Sequence[TrackerError]) -> TrackerError:
    """The one reason, or all of them where there are several."""
    if len(errors) == 1:
        return errors[0]
    lines = "".join(f"\n  {error}" for error in errors)
    return UsageError(f"none of {len(errors)} profiles can be read:{lines}", remedy="tracker doctor examines each")


def _ready_to_save(store: Store, options: IngestOptions) -> SaveRuns:
    """What saves runs. It is imported, and what judges them and advises, while other processes may read already: each
    at its first use, when all is read, would keep everybody waiting.
    """
    from tracker.store.save import save_runs

    if not store.is_made:
        from tracker.store import views  # noqa: F401
    if options.judge:
        from tracker.regressions.judgement import tracks_of, update  # noqa: F401
    if not store.is_in_memory:
        from tracker.advice import stored  # noqa: F401
    return save_runs


def _keep_advice(store: Store, done: Sequence[SavedRun]) -> None:
    """Store what rules advise on runs that came or grew, but for those that wait for ranks; a database in memory is
    asked once, and forgotten.
    """
    if not store.is_in_memory:
        from tracker.advice import stored

        whole = [saved for saved in done if not saved.waits]
        changed = {saved.run_id for saved in whole if saved.created or saved.joined or saved.restored or saved.renewed}
        stored.keep(store, [saved.run_id for saved in done], again=changed)


def judge_runs(store: Store, run_ids: Sequence[int]) -> None:
    """Judge the versions of runs that came, each in a transaction of its own."""
    from tracker.regressions import judgement

    if run_ids:
        judgement.update(store, judgement.tracks_of(store, run_ids))


def ingest_of_job(  # noqa: PLR0913 each is one thing that a job says, or its deliverer
    store: Store,
    paths: Sequence[Path],
    *,
    said: Sidecar,
    otherwise: Sidecar,
    format: str | None = None,
    max_bytes: int = config.MAX_BYTES,
    loaders: tuple[str, ...] = (),
    judge: bool = True,
    as_stored: bool = False,
    read_all_with: Callable[[list[Path], IngestOptions], All] | None = None,
    ranks_handed_over: int | None = None,
) -> list[IngestResult]:
    """`ingest` of what a job left: `said` goes before the sidecars of the profiles, `otherwise` behind them."""
    options = IngestOptions(
        branch=said.branch,
        main_branch=said.main_branch,
        commit=said.commit,
        note=said.note,
        configuration=said.configuration,
        tags=said.tags,
        device=said.device,
        expect_ranks=said.expect_ranks,
        otherwise=otherwise,
        format=format,
        max_bytes=max_bytes,
        loaders=loaders,
        judge=judge,
        as_stored=as_stored,
        read_all_with=read_all_with,
        ranks_handed_over=ranks_handed_over,
    )
    return ingest(store, paths, version=said.version, workload=said.workload, options=options)


class _Asked(Struct, frozen=True):
    """What the user says of one run."""

    version: str | None
    workload: str | None
    options: IngestOptions


def _asked(group: Sequence[Piece], version: str | None, workload: str | None, options: IngestOptions) -> _Asked:
    """The options of this ingest, and where they are silent those that the run was packed with."""
    packed = {piece.place: piece.asked for piece in group if piece.asked != NOTHING}
    if not packed:
        return _Asked(version, workload, options)
    now = Sidecar(
        version=version,
        workload=workload,
        branch=options.branch,
        commit=options.commit,
        note=options.note,
        device=options.device,
        expect_ranks=options.expect_ranks,
        configuration=dict(options.configuration),
        tags=dict(options.tags),
    )
    given = {
        "version": version,
        "workload": workload,
        "branch": options.branch,
        "device": options.device,
        **options.configuration,
    }
    ignoring = {name for name, value in given.items() if value is not None}
    said = over(now, agreed(packed, ignoring=ignoring, by="pack"))
    chosen = replace(
        options,
        branch=said.branch,
        commit=said.commit,
        note=said.note,
        device=said.device,
        expect_ranks=said.expect_ranks,
        configuration=said.configuration,
        tags=said.tags,
    )
    return _Asked(said.version, said.workload, chosen)


def _as_stored(store: Store, group: Sequence[Piece]) -> _Asked | None:
    """The labels of the run that holds all files of `group`; None where there is none."""
    from tracker.store.answers import rows

    digests = sorted({source.digest for piece in group for source in piece.capture.sources})
    known = rows(store, "known_sources", digests=digests) if digests else []
    labels = {(row.version, row.workload) for row in known}
    if len(known) != len(digests) or len(labels) != 1:
        return None
    version, workload = labels.pop()
    return _Asked(version, workload, IngestOptions(branch=branch_of(workload)))


def _finish(group: list[Piece], options: IngestOptions) -> list[Piece]:
    """The captures of one run, on the device that the user named."""
    if options.device is None:
        return group
    device = device_of(group, options.device)
    return [replace(piece, capture=replace(piece.capture, device=device)) for piece in group]


def _steps(capture: Capture) -> int:
    """How many steps were profiled; a row may stand for several."""
    return sum(row.steps for row in capture.rows.steps) if capture.rows is not None else 0


def _result(group: Sequence[Piece], record: RunRecord, saved: SavedRun, options: IngestOptions) -> IngestResult:
    open_device = tuple(filter(None, [unnamed(saved.device)]))
    warnings = [*(text for piece in group for text in piece.warnings), *open_device]
    given = {
        "--device": options.device, "--config": options.configuration, "--tag": options.tags,
        "--note": options.note, "--commit": options.commit, "--expect-ranks": options.expect_ranks,
    }  # fmt: skip
    unused = [name for name, value in given.items() if value]
    if saved.already and unused:
        warnings.append(f"already in, so {', '.join(unused)} changed nothing; tracker runs edit and tag do")
    warnings += [f"run:{saved.run_id}: {note}" for note in saved.notes]
    if saved.beside is not None:
        warnings.append(_how_to_join(saved.run_id, saved.beside))
    return IngestResult(
        run_id=saved.run_id,
        version=record.version,
        workload=record.workload,
        device=f"{saved.device.vendor} {saved.device.model}".strip(),
        ranks=saved.ranks,
        steps=max((_steps(piece.capture) for piece in group), default=0),
        created=saved.created,
        joined=saved.joined,
        already=saved.already,
        paths=tuple(dict.fromkeys(path for piece in group for path in piece.paths)),
        formats=tuple(dict.fromkeys(piece.format for piece in group)),
        warnings=tuple(dict.fromkeys(warnings)),
        restored=saved.restored,
        renewed=saved.renewed,
        documented=saved.documented,
        document_of=saved.document_of,
        captures=tuple(
            Read(
                piece.capture.rank or 0,
                piece.place,
                (*piece.warnings, *open_device, *incomplete_reason(piece.capture)),
            )
            for piece in group
        ),
    )


def incomplete_reason(capture: Capture) -> tuple[str, ...]:
    """Return what the checks of a capture found, where they found anything."""
    if INCOMPLETE_SETTING not in capture.settings:
        return ()
    return (capture.quality_reason if capture.quality == "ok" else f"partial: {capture.quality_reason}",)


def _how_to_join(run_id: int, beside: int) -> str:
    """Return what to do where two runs may be ranks of one job, though no file says so."""
    undo = f"tracker runs delete {run_id} --purge --reason joined"
    return (
        f"run:{run_id} ran at the same time as run:{beside}, and no file says whether they are one job; where they "
        f"are, {undo}, then ingest the profiles of both in one call, with --as-run"
    )
