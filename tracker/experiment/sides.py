"""The two sides of an experiment: a git revision, the working tree, or a folder, as the user named them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.config.places import user_path
from tracker.errors import UsageError
from tracker.experiment.repository import REPOSITORY_VARIABLES, ask_git, find_commit, find_root, run_git
from tracker.experiment.working_tree import hash_working_tree, list_changes
from tracker.hooks.branch import is_shallow
from tracker.profile.experiments import BASELINE, CANDIDATE

_GIT_S: Final = 10.0
_PATH_STARTS: Final = (".", "/", "~")


class Side(Struct, frozen=True):
    """What runs as one side of an experiment.

    name: `baseline` or `candidate`
    text: as the user named it
    commit: of a revision, in full; of the working tree the one that is checked out; None for a folder
    tree: hash of the git tree; of the working tree a digest of that and of what differs from it; None for a folder
    described: `git describe --always`, with -dirty for the working tree; the name of a folder
    root: the top folder of the checkout in which ab was started; outside of one, the folder in which it was started
    started: the folder in which ab was started, relative to the top of the side
    folder: the folder that the side is; None for a revision and the working tree, which are cloned
    is_working_tree: whether the side is what lies in the checkout, with what is not committed
    """

    name: str
    text: str
    commit: str | None
    tree: str | None
    described: str
    root: Path
    started: Path
    folder: Path | None = None
    is_working_tree: bool = False


class PreparedSide(Struct, frozen=True):
    """A side that can run. `folder`: where it lies; `links`: what is shared with the user's checkout, in that."""

    side: Side
    folder: Path
    links: tuple[Path, ...] = ()


def find_sides(
    baseline: str, candidate: str, *, started_in: Path, dirty: bool, differs_otherwise: bool
) -> tuple[Side, Side]:
    """Return what two texts name: a git revision, or else a folder. `./name` is always a folder.

    started_in: the folder in which ab was started
    dirty: the working tree is the candidate: tracked changes, and untracked files that git does not ignore
    differs_otherwise: something else than the files differs between the sides, such as a variable

    UsageError for what is neither; for sides that are the same files, unless they differ otherwise; where the checked
    out commit is a side and tracked files have changes that are not committed, unless `dirty`.
    """
    started_in = started_in.resolve()
    root = find_root(started_in)
    before = _find_side(BASELINE, baseline, root, started_in)
    after = _find_side(CANDIDATE, candidate, root, started_in)
    head = "" if root is None else find_commit(root, "HEAD")
    if dirty:
        after = _take_working_tree(after, head)
    elif root is not None and head in {before.commit, after.commit} and list_changes(root, tracked_only=True):
        problem = f"the working tree of {root} has changes that are not committed, and {head[:12]} is without them"
        raise UsageError(problem, remedy="commit or stash them, or give --dirty to make them the candidate")
    if not differs_otherwise:
        _refuse_equal(before, after)
    return before, after


def working_folder(prepared: PreparedSide) -> Path:
    """Return the folder of a side that corresponds to the one in which ab was started.

    UsageError where the side has none.
    """
    side = prepared.side
    folder = prepared.folder / side.started
    if not folder.is_dir():
        problem = f"{side.name} {side.text} has no folder {side.started}, in which ab was started"
        raise UsageError(problem, remedy="start it in a folder that both sides have, such as the top one")
    return folder


def environment_of(prepared: PreparedSide, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a command that runs in the working folder of a side.

    PYTHONPATH: that folder, the top of the side, then what the caller has; a path in the user's checkout becomes the
    same one of the side, where that has it. Variables by which git finds a repository are left out.
    """
    folder = working_folder(prepared)
    paths = [str(folder), str(prepared.folder)]
    for path in environ.get("PYTHONPATH", "").split(os.pathsep):
        if path:
            paths.append(_path_of_side(prepared, path))
    variables = {name: value for name, value in environ.items() if name not in REPOSITORY_VARIABLES}
    variables["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    variables["PWD"] = str(folder)
    return variables


def _path_of_side(prepared: PreparedSide, path: str) -> str:
    """Return an absolute path in the user's checkout as that of the side; any other, or one that it lacks, as it is."""
    root, folder = prepared.side.root, prepared.side.folder
    is_copy = folder is None or not folder.is_relative_to(root)
    real_path = Path(path).resolve()
    if not is_copy or not os.path.isabs(path) or not real_path.is_relative_to(root):
        return path
    own = prepared.folder / real_path.relative_to(root)
    return str(own) if own.exists() else path


def _find_side(name: str, text: str, root: Path | None, started_in: Path) -> Side:
    folder = started_in / user_path(text)
    if text.startswith(_PATH_STARTS):
        if not folder.is_dir():
            raise UsageError(f"{name} {text}: no such folder", remedy="a side is a git revision or a folder")
        return _folder_side(name, text, folder.resolve(), root, started_in)
    commit = "" if root is None or not text.strip() else find_commit(root, text)
    if root is None or not commit:
        if text.strip() and folder.is_dir():
            return _folder_side(name, text, folder.resolve(), root, started_in)
        raise _unknown_side(name, text, root, started_in)
    return Side(
        name=name,
        text=text,
        commit=commit,
        tree=os.fsdecode(run_git(root, ["rev-parse", "--verify", f"{commit}^{{tree}}"])).strip(),
        described=ask_git(root, ["describe", "--always", commit]).line or commit[:12],
        root=root,
        started=started_in.relative_to(root),
    )


def _unknown_side(name: str, text: str, root: Path | None, started_in: Path) -> UsageError:
    if root is None:
        problem = f"{name} {text!r} is no folder, and {started_in} lies in no git repository"
        return UsageError(problem, remedy="start ab in a checkout, or name two folders")
    problem = f"{name} {text!r} is neither a revision of {root} nor a folder"
    if is_shallow(str(root), _GIT_S):
        return UsageError(problem, remedy="this clone is shallow: git fetch --unshallow, or clone with fetch-depth: 0")
    return UsageError(problem, remedy="git branch -a and git tag list what can be named")


def _folder_side(name: str, text: str, folder: Path, root: Path | None, started_in: Path) -> Side:
    started = Path()
    # a folder in the repository is no copy of it
    if root is not None and (folder == root or not folder.is_relative_to(root)):
        started = started_in.relative_to(root)
    return Side(
        name=name,
        text=text,
        commit=None,
        tree=None,
        described=folder.name,
        root=started_in if root is None else root,
        started=started,
        folder=folder,
    )


def _take_working_tree(candidate: Side, head: str) -> Side:
    """Return the working tree as the candidate; where nothing in it is changed, the commit that is checked out."""
    if candidate.commit != head or not head:
        problem = f"--dirty makes the working tree the candidate, and {candidate.text} is not what is checked out"
        raise UsageError(problem, remedy="name HEAD as the candidate, or leave out --dirty")
    changes = list_changes(candidate.root)
    if not changes:
        return candidate
    return replace(
        candidate,
        tree=hash_working_tree(candidate.root, changes),
        described=f"{candidate.described}-dirty",
        is_working_tree=True,
    )


def _refuse_equal(before: Side, after: Side) -> None:
    names = f"{before.text} and {after.text}"
    remedy = "name two that differ, or say what else does: {side} in the command, --env-baseline or --env-candidate"
    if before.folder is not None and before.folder == after.folder:
        raise UsageError(f"both sides are the same folder: {before.folder}", remedy=remedy)
    if before.tree is not None and before.tree == after.tree:
        raise UsageError(f"both sides are the same tree: {names} ({before.tree[:12]})", remedy=remedy)
