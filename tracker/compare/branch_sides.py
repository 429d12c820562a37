"""Branches as sides: the name of a branch, or of the main line, means the newest version there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from tracker.compare.commits import TIMEOUT_S
from tracker.errors import UsageError
from tracker.hooks.branch import MAIN_NAMES, name_of_remote_main_line
from tracker.profile.branches import branch_of, main_of
from tracker.store import Store, queries
from tracker.units import counted


class Branch(Struct, frozen=True):
    """A branch, or a main line, that a side names. `lines`: the workloads that have it, as they are stored; `device`:
    behind the name, None where none is.
    """

    name: str
    device: str | None
    lines: tuple[str, ...]

    @property
    def is_main_line(self) -> bool:
        """Whether it is a main line."""
        return not branch_of(self.lines[0])

    @property
    def mains(self) -> frozenset[str]:
        """The workloads that it may be of, without their branches."""
        return frozenset(map(main_of, self.lines))


class NewestVersion(Struct, frozen=True):
    """What a branch means as a side: its newest version, with its runs. `line`: the workload with the branch."""

    line: str
    version: str
    run_ids: tuple[int, ...]


def find_branch(store: Store, reference: str, workload: str | None = None) -> Branch | None:
    """Return the branch that NAME or NAME@DEVICE names; None where it names none, and where a version is called so."""
    known = queries.version_labels(store, workload)
    for name, device in _list_names_and_devices(reference):
        if name in known:
            return None
        if lines := _list_lines(store, name, workload):
            return Branch(name, device, tuple(lines))
    return None


def _list_names_and_devices(reference: str) -> Iterator[tuple[str, str | None]]:
    """Yield what may be the name and the device: git allows an @ in the name of a branch."""
    yield reference, None
    name, at, device = reference.rpartition("@")
    if at and name:
        yield name, device


def _list_lines(store: Store, name: str, workload: str | None) -> list[str]:
    """Return the workloads, with their branches, that the name of a branch or of the main line means; [] for none.

    The main line is called as the settings say. Where these say nothing, a stored branch of that name wins over
    `main`, `master` and what origin/HEAD of the repository around the current folder names.
    """
    main = None if workload is None else main_of(workload)
    lines = [line for line in queries.workloads_with_versions(store) if main in (None, main_of(line))]
    main_lines = [line for line in lines if not branch_of(line)]
    if name == store.main_branch:
        return main_lines
    branches = [line for line in lines if branch_of(line) == name]
    if branches or store.main_branch:
        return branches
    is_main = name in MAIN_NAMES or name == name_of_remote_main_line(".", TIMEOUT_S)
    return main_lines if is_main else []


def find_newest(store: Store, branch: Branch, mains: Collection[str] = ()) -> NewestVersion:
    """Return the newest version of a branch, and its runs.

    `mains`: the workloads that other sides are of, which choose where several have such a branch. UsageError where
    several are left, and where the branch has no runs.
    """
    lines = [line for line in branch.lines if main_of(line) in mains] or list(branch.lines)
    if len(lines) > 1:
        names = ", ".join(map(main_of, lines))
        problem = (
            f"{branch.name} is the main line of several workloads" if branch.is_main_line
            else f"several workloads have a branch {branch.name!r}"
        )  # fmt: skip
        raise UsageError(f"{problem}: {names}", remedy="choose one with --workload")
    version, run_ids = queries.newest_version(store, lines[0], branch.device)
    return NewestVersion(lines[0], version, run_ids)


def note_on_newest(newest: Mapping[str, NewestVersion], run_ids: Mapping[str, Collection[int]]) -> tuple[str, ...]:
    """Return a sentence on which version each side that names a branch is, () where none does.

    `run_ids`: the runs of each side that are compared.
    """
    parts = []
    for reference, one in newest.items():
        what = "its newest version" if branch_of(one.line) else "the newest version of the main line,"
        parts.append(f"{reference}: {what} {one.version} ({counted(len(run_ids[reference]), 'run')})")
    return (f"{'; '.join(parts)}.",) if parts else ()


def notes_on_same_names(store: Store, references: Collection[str], workload: str | None = None) -> tuple[str, ...]:
    """Return sentences on versions among `references` that a branch has the name of, too."""
    names = {name for reference in references for name, _ in _list_names_and_devices(reference)}
    main = None if workload is None else main_of(workload)
    lines = [line for line in queries.workloads_with_versions(store) if main in (None, main_of(line))]
    branches = {branch_of(line) for line in lines} & names
    same = branches & queries.version_labels(store, workload) if branches else ()
    return tuple(f"{name} is the version of that name, and not the branch {name}." for name in sorted(same))
