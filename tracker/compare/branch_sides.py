"""Branches as sides: the name of a branch, or of the main line, means the newest version there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from tracker.compare.commits import TIMEOUT_S
from tracker.errors import UsageError
from tracker.hooks.branch import MAIN_NAMES, name_of_remote_main_line
from tracker.profile.branches import branch_of, main_of
from tracker.schema.column_names import VERSION, WORKLOAD
from tracker.store import Store, queries
from tracker.units import counted


class KnownNames:
    """The names that a side may have: labels of versions, branches and main lines. The database is read and git is
    asked once each, when the first side needs it.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    @property
    def main_branch(self) -> str | None:
        """What the settings call the main line, None where they do not."""
        return self.store.main_branch

    @cached_property
    def remote_main_branch(self) -> str:
        """What origin/HEAD of the repository around the current folder names, "" where that is not known."""
        return name_of_remote_main_line(".", TIMEOUT_S)

    @cached_property
    def labels_by_workload(self) -> Mapping[str, frozenset[str]]:
        """The labels of the versions of each workload, of main lines and of branches, in order."""
        labels: dict[str, set[str]] = {}
        for workload, version in queries.versions(self.store).rows(WORKLOAD, VERSION):
            labels.setdefault(workload, set()).add(version)
        return {workload: frozenset(own) for workload, own in labels.items()}

    @cached_property
    def _workloads_by_main(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for workload in self.labels_by_workload:
            found.setdefault(main_of(workload), []).append(workload)
        return found

    def list_workloads(self, workload: str | None = None) -> list[str]:
        """Return the main line and the branches that `workload` is one of, all workloads where that is None."""
        return [*self.labels_by_workload] if workload is None else self._workloads_by_main.get(main_of(workload), [])

    def is_version(self, name: str, workload: str | None = None) -> bool:
        """Return whether `name` may mean a version beside `workload`, see `queries.version_groups`."""
        return any(
            name in self.labels_by_workload[own]
            for own in self.list_workloads(workload)
            if queries.may_have_version(own, workload)
        )


class Branch(Struct, frozen=True):
    """A branch, or a main line, that a side names. `workloads`: those that have it, as they are stored; `device`:
    behind the name, None where none is.
    """

    name: str
    device: str | None
    workloads: tuple[str, ...]

    @property
    def is_main_line(self) -> bool:
        """Whether it is a main line."""
        return not branch_of(self.workloads[0])

    @property
    def mains(self) -> frozenset[str]:
        """The workloads that it may be of, without their branches."""
        return frozenset(map(main_of, self.workloads))


class NewestVersion(Struct, frozen=True):
    """What a branch means as a side: its newest version, with its runs. `workload`: with the branch."""

    workload: str
    version: str
    run_ids: tuple[int, ...]


def find_branch(known: KnownNames, reference: str, workload: str | None = None) -> Branch | None:
    """Return the branch that NAME or NAME@DEVICE names; None where it names none, and where a version is called so."""
    for name, device in _list_names_and_devices(reference):
        if known.is_version(name, workload):
            return None
        if workloads := _list_workloads_with(known, name, workload):
            return Branch(name, device, tuple(workloads))
    return None


def _list_names_and_devices(reference: str) -> Iterator[tuple[str, str | None]]:
    """Yield what may be the name and the device: git allows an @ in the name of a branch."""
    if reference:
        yield reference, None
    name, _, device = reference.rpartition("@")
    if name and device:
        yield name, device


def _list_workloads_with(known: KnownNames, name: str, workload: str | None) -> list[str]:
    """Return the workloads, with their branches, that the name of a branch or of the main line means; [] for none.

    The main line is called as the settings say. Where these say nothing, a stored branch of that name wins over
    `main`, `master` and what origin/HEAD of the repository around the current folder names.
    """
    of_workload = known.list_workloads(workload)
    main_lines = [own for own in of_workload if not branch_of(own)]
    if name == known.main_branch:
        return main_lines
    branches = [own for own in of_workload if branch_of(own) == name]
    if branches or known.main_branch:
        return branches
    is_main = name in MAIN_NAMES or name == known.remote_main_branch
    return main_lines if is_main else []


def find_newest(store: Store, branch: Branch, mains: Collection[str] = ()) -> NewestVersion:
    """Return the newest version of a branch, and its runs.

    `mains`: the workloads that other sides are of, which choose where several have such a branch. UsageError where
    several are left, and where the branch has no runs.
    """
    workloads = [one for one in branch.workloads if main_of(one) in mains] or list(branch.workloads)
    if len(workloads) > 1:
        names = ", ".join(map(main_of, workloads))
        problem = (
            f"{branch.name} is the main line of several workloads" if branch.is_main_line
            else f"several workloads have a branch {branch.name!r}"
        )  # fmt: skip
        raise UsageError(f"{problem}: {names}", remedy="choose one with --workload")
    version, run_ids = queries.newest_version(store, workloads[0], branch.device)
    return NewestVersion(workloads[0], version, run_ids)


def note_on_newest(newest: Mapping[str, NewestVersion], run_ids: Mapping[str, Collection[int]]) -> tuple[str, ...]:
    """Return a sentence on which version each side that names a branch is, () where none does.

    `run_ids`: the runs of each side that are compared.
    """
    parts = []
    for reference, one in newest.items():
        what = "its newest version" if branch_of(one.workload) else "the newest version of the main line,"
        parts.append(f"{reference}: {what} {one.version} ({counted(len(run_ids[reference]), 'run')})")
    return (f"{'; '.join(parts)}.",) if parts else ()


def notes_on_same_names(
    known: KnownNames, references: Collection[str], workload: str | None = None
) -> tuple[str, ...]:  # fmt: skip
    """Return sentences on versions among `references` that a branch has the name of, too."""
    names = {name for reference in references for name, _ in _list_names_and_devices(reference)}
    branches = names & {branch_of(own) for own in known.list_workloads(workload)}
    same = [name for name in branches if known.is_version(name, workload)]
    return tuple(f"{name} is the version of that name, and not the branch {name}." for name in sorted(same))
