"""What is stored of a run beside its captures: from what its files state and what the user says."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tracker.errors import SourceError, UsageError
from tracker.hooks.branch import main_commits, main_names, short_name
from tracker.hooks.environment import capture_git
from tracker.intake import sidecar
from tracker.intake.devices import parse_device
from tracker.intake.pieces import IngestOptions, Piece
from tracker.profile import UNKNOWN_DEVICE, Device
from tracker.profile.branches import branch_of, hash_of_label, main_of, name_workload

if TYPE_CHECKING:
    from tracker.store import RunRecord

_GIT_S: Final = 10.0
HOW_TO_LABEL: Final = {
    "version": "give --version LABEL, for example --version v1",
    "workload": "give --workload NAME, for example --workload resnet50",
}


def record_of(group: Sequence[Piece], version: str | None, workload: str | None, options: IngestOptions) -> RunRecord:
    """The record of the run that `group` is; a UsageError where nobody says its version or workload.

    The first that says something counts: the options, the sidecars of the run's profiles, `options.otherwise`, and what
    the files state themselves. A commit belongs to the version that is said with it. The workload of a run of a branch
    names the branch, too.
    """
    from tracker.store.run_record import RunRecord

    own, otherwise = _of_sidecars(group, version, workload, options), options.otherwise
    said = {**otherwise.configuration, **own.configuration, **options.configuration}
    configuration = {**_stated_by_files(group, ignoring=said), **said}
    of_workload = workload or own.workload or otherwise.workload or _stated(group, "workload")
    of_version = version or own.version or otherwise.version or _stated(group, "version")
    commit = options.commit or (None if version else _commit(group, own, otherwise))
    branch = _branch(of_workload, own, options)
    starts = [piece.capture.started_at_ns for piece in group if piece.capture.started_at_ns is not None]
    return RunRecord(
        workload=name_workload(main_of(of_workload), branch),
        version=of_version,
        commit=commit,
        note=options.note or own.note or otherwise.note,
        configuration=configuration,
        tags={**otherwise.tags, **own.tags, **options.tags},
        facts=_common_facts(group),
        device=device_of(group, options.device),
        started_at_ns=min(starts, default=None),
        ranks_expected=options.expect_ranks or own.expect_ranks or otherwise.expect_ranks,
        ranks_handed_over=options.ranks_handed_over,
        experiment=options.experiment,
        rules_version=min(piece.rules_version for piece in group),
        # a job that begins to name its world size may have been of one rank before
        stated=frozenset(configuration.keys() - said.keys() - {"world_size"}),
        main_commits=_main_commits(own, options, commit, of_version) if branch else (),
    )


def _branch(workload: str, own: sidecar.Sidecar, options: IngestOptions) -> str:
    """The branch of a run, "" for the main line; `workload` may name it, too. UsageError where two are named."""
    in_workload = branch_of(workload)
    if options.branch and in_workload and options.branch != in_workload:
        raise UsageError(
            f"the workload {workload!r} names a branch, and the branch is given as {options.branch!r}",
            remedy="leave one of them out",
        )
    said = (options.branch, own.branch, options.otherwise.branch, in_workload)
    given = next((name for name in said if name is not None), "")
    if given and not given.strip():
        raise UsageError("the branch is empty", remedy="leave it out for the main line")
    branch = short_name(given) or given.strip()
    return "" if branch in main_names(_main_branch(own, options)) else branch


def _main_branch(own: sidecar.Sidecar, options: IngestOptions) -> str:
    return options.main_branch or own.main_branch or options.otherwise.main_branch or ""


def _main_commits(own: sidecar.Sidecar, options: IngestOptions, commit: str | None, version: str) -> tuple[str, ...]:
    """The commits of the main line from the merge base back: as the job said, else as git says in this folder.

    What the job said of another main line than that of the settings does not count. Git is asked about a commit that
    is known, and about HEAD where the version is what it is called here; a label that means something in this folder
    may mean something else where the job ran.
    """
    for said in (own, options.otherwise):
        if said.main_commits and options.main_branch in (None, said.main_branch):
            return tuple(said.main_commits)
    revision = commit or hash_of_label(version)
    if not revision:
        here = capture_git([os.getcwd()], _GIT_S).get("version")
        revision = "HEAD" if here == version else ""
    return tuple(main_commits(os.getcwd(), revision, _main_branch(own, options), _GIT_S)) if revision else ()


def _of_sidecars(
    group: Sequence[Piece], version: str | None, workload: str | None, options: IngestOptions
) -> sidecar.Sidecar:
    """What the sidecars of a run say together, where no option decides."""
    given = {
        "version": version,
        "workload": workload,
        "branch": options.branch,
        "device": options.device,
        **options.configuration,
    }
    said = {piece.place: piece.said for piece in group if piece.said is not None}
    return sidecar.agreed(said, ignoring={name for name, value in given.items() if value is not None})


def _commit(group: Sequence[Piece], own: sidecar.Sidecar, otherwise: sidecar.Sidecar) -> str | None:
    """The commit of the version, said by whoever says the version."""
    for said in (own, otherwise):
        if said.version is not None:
            return said.commit
    commits = {piece.capture.labels.get("commit") for piece in group}
    return own.commit or otherwise.commit or (commits.pop() if len(commits) == 1 else None)


def _stated(group: Sequence[Piece], name: str) -> str:
    """The version or workload that the files of a run state; a UsageError where they state none, or several."""
    said = {piece.capture.labels.get(name): piece.paths[0] for piece in group}
    label = next((label for label in said if label), None)
    if label is not None and len(said) == 1:
        return label
    silent = said.get(None, group[0].paths[0])
    problem = f"{silent} states no {name}"
    if label is not None and None not in said:
        problem = f"the files of one run state different {name}s ({', '.join(sorted(filter(None, said)))})"
    raise UsageError(problem, remedy=HOW_TO_LABEL[name])


def date_of(group: Sequence[Piece]) -> str:
    """The date of the version that the files state, '' for none."""
    return min(piece.capture.labels.get("date", "") for piece in group)


def with_named_devices(pieces: Sequence[Piece], named: str | None) -> list[Piece]:
    """Return the captures of a call on the device that the user named, now or when they were packed.

    It holds before runs are formed: ranks of which one names another chip, or none, are of one device then.
    """
    vendors = {piece.capture.device.vendor for piece in pieces} - {""}
    vendor = vendors.pop() if len(vendors) == 1 else ""
    on_device = []
    for piece in pieces:
        name, stated = named or piece.asked.device, piece.capture.device
        if not name:
            on_device.append(piece)
            continue
        device = parse_device(name, Device(stated.vendor or vendor, UNKNOWN_DEVICE.model))
        on_device.append(replace(piece, capture=replace(piece.capture, device=device)))
    return on_device


def device_of(group: Sequence[Piece], named: str | None) -> Device:
    """The device of a run: the one that the user named, else that of its files. The vendor that all of these state is
    that of a device that is named without one.
    """
    models = {piece.capture.device for piece in group}
    if named is not None:
        vendors = {device.vendor for device in models}
        return parse_device(named, Device(vendors.pop() if len(vendors) == 1 else "", UNKNOWN_DEVICE.model))
    if len(models) > 1:
        names = ", ".join(sorted(device.model for device in models))
        raise SourceError(
            group[0].paths[0],
            "",
            f"the ranks of one run ran on different devices ({names})",
            remedy="give --device MODEL",
        )
    return group[0].capture.device


def _stated_by_files(group: Sequence[Piece], *, ignoring: Collection[str]) -> dict[str, str]:
    """The world size where a file says it, and what else files say; a file that leaves a key out contradicts nothing.

    UsageError where files of one run state two values of a key that is not in `ignoring`.
    """
    sizes = {piece.capture.world_size for piece in group if piece.capture.world_size is not None}
    known = {"world_size": str(sizes.pop())} if len(sizes) == 1 else {}
    found: dict[str, tuple[str, str]] = {}
    for piece in group:
        for key, value in piece.capture.configuration.items():
            first, place = found.setdefault(key, (value, piece.place))
            if first != value and key not in ignoring:
                raise UsageError(
                    f"{place} states {key} {first}, {piece.place} of the same run {value}",
                    remedy=f"give --config {key}=VALUE, or leave out --as-run",
                )
    return {**known, **{key: value for key, (value, _) in found.items()}}


def _common_facts(group: Sequence[Piece]) -> dict[str, str]:
    """The environment of a run: one value per key; where ranks differ, their distinct values in order, joined by ` |
    `.
    """
    from tracker.store import labels

    values: dict[str, list[str]] = {}
    for piece in group:
        for key, value in piece.capture.facts.items():
            values.setdefault(key, []).append(value)
    return {key: labels.join_facts(said) for key, said in sorted(values.items())}
