"""Edits of runs: each one transaction, each with a clear error for what does not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Connection, text

from tracker.errors import UsageError, check_reason
from tracker.profile import Device
from tracker.profile.experiments import name_experiment
from tracker.schema.column_names import VERSION_ID
from tracker.store import completing, documents, labels
from tracker.store.bulk import clean
from tracker.store.captures import DETAIL_TABLES
from tracker.store.connect import Store
from tracker.store.queries.resolve import find_run
from tracker.store.tracks import judge_again

_SET_LABELS: Final = text(
    "UPDATE run SET workload_id = :workload_id, configuration_id = :configuration_id, version_id = :version_id, "
    "device_id = :device_id WHERE id = :id"
)
_MOVE_MARKS: Final = text(
    "UPDATE finding_action SET first_version_id = :new WHERE first_version_id = :old AND workload_id = :workload_id "
    "AND configuration_id = :configuration_id AND device_id = :device_id"
)
_MOVE_NEWEST: Final = text(
    "UPDATE finding_action SET newest_version_id = :new WHERE newest_version_id = :old AND workload_id = :workload_id "
    "AND configuration_id = :configuration_id AND device_id = :device_id"
)
_LEFT_IN_VERSION: Final = text(
    "SELECT COUNT(*) FROM run WHERE version_id = :version_id AND workload_id = :workload_id "
    "AND configuration_id = :configuration_id AND device_id = :device_id"
)
_SET_STATE: Final = text("UPDATE run SET state = :state, state_reason = :reason WHERE id = :id")
_SET_NOTE: Final = text("UPDATE run SET note = :note WHERE id = :id")
_REMOVE_TAG: Final = text("DELETE FROM run_fact WHERE run_id = :id AND kind = 'tag' AND key = :key")
_ADD_TAG: Final = text("INSERT INTO run_fact (run_id, kind, key, value) VALUES (:id, 'tag', :key, :value)")
_DEVICE: Final = text("SELECT vendor, model FROM device WHERE id = :id")
_CONFIGURATION: Final = text("SELECT key, value FROM configuration_value WHERE configuration_id = :id ORDER BY key")
_BRANCH: Final = text("SELECT id FROM workload WHERE name = :workload AND main_id IS NOT NULL")
_RUNS_OF_WORKLOAD: Final = text(
    "SELECT id AS run_id, configuration_id FROM run WHERE workload_id = :workload_id ORDER BY id"
)
_VERSIONS_OF_WORKLOAD: Final = text("SELECT id FROM version WHERE workload_id = :workload_id ORDER BY id")
_FREE_VERSIONS: Final = text(
    "UPDATE version SET pinned = FALSE, note = NULL, parent = NULL WHERE workload_id = :workload_id"
)
_TABLES_OF_A_RUN: Final = (
    "sample",
    "sample_array",
    "advice",
    *reversed(DETAIL_TABLES),
    "capture",
    "source",
    "run_fact",
    "run_group",
)


class _Labels(Struct, frozen=True):
    """What runs are to be filed under; None for what stays."""

    version: str | None = None
    workload: str | None = None
    device: Callable[[Device], Device] | None = None
    configuration: Mapping[str, str] | None = None
    commit: str | None = None


def edit_all(
    store: Store,
    run_ids: Iterable[int],
    *,
    version: str | None = None,
    workload: str | None = None,
    device: Device | Callable[[Device], Device] | None = None,
    configuration: Mapping[str, str] | None = None,
    note: str | None = None,
    commit: str | None = None,
) -> None:
    """File runs under another version, workload, device or configuration, give their version a commit, and replace the
    remark on them.

    None leaves it, an empty note removes it. Names are made when new; a version takes its commit along. `device`: the
    one of all of them, or what makes it of the one that a run has. `commit`: of the version that the runs have then;
    UsageError where that is known to be another commit.
    """
    corrected = (lambda _: device) if isinstance(device, Device) else device
    new = _Labels(version, workload, corrected, configuration, commit)
    relabels = new != _Labels()

    def change(connection: Connection, run: Any) -> None:
        if relabels:
            _refuse_run_of_experiment(run)
            _relabel(connection, run, new)
        if note is not None:
            connection.execute(_SET_NOTE, {"id": run.run_id, "note": clean(note) or None})

    _change_all(store, run_ids, change, relabels=relabels)


def tag_all(store: Store, run_ids: Iterable[int], tags: Mapping[str, str]) -> None:
    """Set tags on runs; those of the same key are replaced."""
    labels.check_tags(tags)

    def change(connection: Connection, run: Any) -> None:
        for key, value in tags.items():
            connection.execute(_REMOVE_TAG, {"id": run.run_id, "key": clean(key)})
            connection.execute(_ADD_TAG, {"id": run.run_id, "key": clean(key), "value": clean(value)})

    _change_all(store, run_ids, change)


def untag_all(store: Store, run_ids: Iterable[int], keys: Iterable[str]) -> None:
    """Remove tags from runs; UsageError where one has none of a key."""
    distinct = list(dict.fromkeys(keys))

    def change(connection: Connection, run: Any) -> None:
        for key in distinct:
            if connection.execute(_REMOVE_TAG, {"id": run.run_id, "key": clean(key)}).rowcount != 1:
                raise UsageError(f"run {run.run_id} has no tag {key!r}", remedy="tracker runs shows the tags")

    _change_all(store, run_ids, change)


def exclude_all(store: Store, run_ids: Iterable[int], reason: str) -> None:
    """Leave runs out of every comparison, with the reason."""
    _change_all(store, run_ids, _to_state("excluded", reason))


def restore_all(store: Store, run_ids: Iterable[int], reason: str = "") -> None:
    """Take excluded or deleted runs back, with the reason if there is one.

    UsageError for a run of an experiment: it was run beside another build, and no history may rest on it.
    """
    if reason:
        check_reason(reason)

    def restore(connection: Connection, run: Any) -> None:
        _refuse_run_of_experiment(run)
        _set_state(connection, run, "active", reason)

    _change_all(store, run_ids, restore, or_deleted=True)


def _refuse_run_of_experiment(run: Any) -> None:
    """UsageError for a run of an experiment: no history may rest on it."""
    if run.experiment_id is not None:
        name = name_experiment(run.experiment_id)
        raise UsageError(
            f"run {run.run_id} is of experiment {name}, which no history has",
            remedy=f"tracker runs --experiment {name} lists its runs, tracker show reads them",
        )


def delete_all(store: Store, run_ids: Iterable[int], reason: str, *, purge: bool = False) -> None:
    """Hide runs from every list and comparison, with the reason; `restore_all` takes them back.

    `purge`: remove them with all their rows for good instead; their files may then come in again.
    """
    hide = _to_state("deleted", reason)
    _change_all(store, run_ids, _purge if purge else hide, or_deleted=True, relabels=purge)


def forget_branch(store: Store, workload: str) -> int:
    """Remove a branch for good, with its runs, versions and findings; how many runs it had; its files may come in.

    UsageError for a workload that is none of a branch.
    """

    def work(connection: Connection) -> int:
        found = connection.execute(_BRANCH, {"workload": workload}).one_or_none()
        if found is None:
            raise UsageError(f"{workload!r} is no branch", remedy="tracker versions shows the branches")
        runs = connection.execute(_RUNS_OF_WORKLOAD, {"workload_id": found.id}).all()
        for run in runs:
            labels.hold_run(connection, run.run_id)
        for run in runs:
            _purge(connection, run)
        versions = connection.execute(_VERSIONS_OF_WORKLOAD, {"workload_id": found.id}).scalars().all()
        connection.execute(_FREE_VERSIONS, {"workload_id": found.id})
        configurations = sorted({run.configuration_id for run in runs})
        labels.forget_unused(connection, workload=found.id, configurations=configurations, versions=versions)
        return len(runs)

    return store.transact(work)


def _change_all(
    store: Store,
    run_ids: Iterable[int],
    change: Callable[[Connection, Any], None],
    *,
    or_deleted: bool = False,
    relabels: bool = False,
) -> None:
    """`change` each run in one transaction; UsageError for one that is unknown before anything is changed.

    `relabels`: runs leave what they are filed under; where they were the last, that goes as well.
    """
    wanted = sorted({int(run_id) for run_id in run_ids})

    def work(connection: Connection) -> None:
        for run_id in wanted:
            find_run(connection, run_id, or_deleted=or_deleted)
            labels.hold_run(connection, run_id)
        runs = [find_run(connection, run_id, or_deleted=or_deleted) for run_id in wanted]
        for run in runs:
            change(connection, run)
        if relabels:
            _forget_labels_of(connection, runs)

    store.transact(work)


def _forget_labels_of(connection: Connection, runs: Sequence[Any]) -> None:
    """Remove the labels that these runs were filed under and no run is any more; `runs`: as they were filed."""
    for workload in sorted({run.workload_id for run in runs}):
        runs_of_workload = [run for run in runs if run.workload_id == workload]
        labels.forget_unused(
            connection,
            workload=workload,
            configurations=sorted({run.configuration_id for run in runs_of_workload}),
            versions=sorted({run.version_id for run in runs_of_workload}),
        )


def _to_state(state: str, reason: str) -> Callable[[Connection, Any], None]:
    check_reason(reason)
    return lambda connection, run: _set_state(connection, run, state, reason)


def _set_state(connection: Connection, run: Any, state: str, reason: str) -> None:
    connection.execute(_SET_STATE, {"id": run.run_id, "state": state, "reason": clean(reason)})
    _release(connection, run)


def _release(connection: Connection, run: Any) -> None:
    """Take the step of a document out of the run that it is a source of: it is a run of its own from now on."""
    main_id = documents.main_of(connection, run.run_id)
    if main_id is None:
        return
    documents.release(connection, run.run_id)
    if not documents.has_lost_details(connection, main_id):
        completing.hold_and_make_again(connection, main_id)
    judge_again(connection, main_id)


def _relabel(connection: Connection, run: Any, new: _Labels) -> None:
    """File a run under the new labels, and make its samples again where its track is another one now."""
    workload = run.workload_id
    if new.workload is not None:
        workload = labels.workload_id(connection, new.workload)
    values = new.configuration
    if values is None:
        values = _configuration(connection, run.configuration_id)
    device = run.device_id
    if new.device is not None:
        device = labels.device_id(connection, new.device(_device(connection, run.device_id)))
    found = {
        "id": run.run_id,
        "workload_id": workload,
        "configuration_id": _place_configuration(connection, workload, values),
        "version_id": _place_version(connection, run, workload, new.version),
        "device_id": device,
    }
    if new.commit is not None:
        labels.version_id(connection, workload, new.version or run.version, new.commit)
    connection.execute(_SET_LABELS, found)
    _move_marks(connection, run, found)
    for document in documents.of_runs(connection, [run.run_id]).get(run.run_id, []):
        _relabel(connection, find_run(connection, document, or_deleted=True), new)
    if any(found[name] != getattr(run, name) for name in ("workload_id", "configuration_id", "device_id")):
        completing.make_again(connection, run.run_id)


def _place_version(connection: Connection, run: Any, workload: int, label: str | None) -> int:
    """The version `label` of a workload, None: that of the run. A version that keeps its label keeps its commit, and
    where it left the main line.
    """
    if label not in (None, run.version):
        return labels.version_id(connection, workload, label)
    if workload == run.workload_id:
        return int(run.version_id)
    left_at = (run.main_commits or "").split()
    return labels.version_id(connection, workload, run.version, run.commit_id, left_at)


def _place_configuration(connection: Connection, workload: int, values: Mapping[str, str]) -> int:
    """The configuration with these values: of a branch that of its main line, where that has it."""
    main = labels.main_line(connection, workload)
    known = None if main == workload else labels.find_configuration(connection, main, values)
    return labels.configuration_id(connection, workload, values) if known is None else known


def _move_marks(connection: Connection, run: Any, found: Mapping[str, int]) -> None:
    """Let the marks on the findings of a version follow its last run to another label. `run`: as it was filed;
    `found`: as it is now.
    """
    track = {name: getattr(run, name) for name in ("workload_id", "configuration_id", "device_id")}
    if any(found[name] != number for name, number in track.items()):
        return
    if not connection.execute(_LEFT_IN_VERSION, {**track, "version_id": run.version_id}).scalar_one():
        versions = {"old": run.version_id, "new": found[VERSION_ID]}
        connection.execute(_MOVE_MARKS, {**track, **versions})
        connection.execute(_MOVE_NEWEST, {**track, **versions})


def _purge(connection: Connection, run: Any) -> None:
    _release(connection, run)
    for document in documents.of_runs(connection, [run.run_id]).get(run.run_id, []):
        # what is left of an execution that goes
        _purge(connection, find_run(connection, document, or_deleted=True))
    for table in _TABLES_OF_A_RUN:
        # The names are those above.
        connection.execute(text(f"DELETE FROM {table} WHERE run_id = :id"), {"id": run.run_id})  # noqa: S608
    connection.execute(text("DELETE FROM run WHERE id = :id"), {"id": run.run_id})


def _device(connection: Connection, device_id: int) -> Device:
    found = connection.execute(_DEVICE, {"id": device_id}).one()
    return Device(found.vendor, found.model)


def _configuration(connection: Connection, configuration_id: int) -> dict[str, str]:
    return {row.key: row.value for row in connection.execute(_CONFIGURATION, {"id": configuration_id})}
