"""Folders of their own for the sides of an experiment, made of the user's checkout, which stays as it is."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tracker.errors import UsageError
from tracker.experiment.repository import ask_git, find_git_path, list_paths, list_submodules, run_git
from tracker.experiment.sides import PreparedSide, Side
from tracker.experiment.working_tree import (
    check_inside,
    copy_changes,
    digest_in_lfs,
    is_repository,
    list_changes,
)

_UNFINISHED: Final = ".unfinished"


def make_side(side: Side, place: Path, *, links: Sequence[str]) -> PreparedSide:
    """Return a side that can run: in a clone below `place`, which is made unless it is there; a folder stays in place.

    The clone has the objects of the user's repository by reference, its tags, no remote, and the submodules that the
    checkout has, at the commits of the revision. Files in Git LFS are those that were fetched; the others are what git
    has in their place. The working tree is its commit, with the files that differ copied over it.

    links: what git ignores and both sides share, relative to where ab was started or to the top of the repository

    UsageError for a link that is not there, lies outside of the repository, or is tracked by git; where an object or
    submodule is missing; where the clone cannot be written.
    """
    if side.folder is not None:
        return PreparedSide(side, side.folder)
    shared = tuple(_find_link(side, text) for text in links)
    folder = place / side.name / side.root.name
    if folder.is_dir():
        return PreparedSide(side, folder, shared)
    unfinished = place / f"{side.name}{_UNFINISHED}"
    try:
        remove_sides(unfinished)
        _clone(side, unfinished / side.root.name, shared)
        unfinished.rename(place / side.name)
    except OSError as error:
        where = error.filename or unfinished
        raise UsageError(f"{side.name} {side.text} cannot be cloned: {where}: {error.strerror}") from error
    return PreparedSide(side, folder, shared)


def remove_sides(place: Path) -> None:
    """Remove the clones at or below `place`, read-only folders and files too. What links lead to stays; so does all
    else where there is no such folder.
    """
    if place.is_symlink():
        place.unlink()
        return
    if not place.is_dir():
        return
    place.chmod(stat.S_IRWXU)
    for parent, folders, _ in os.walk(place):
        for name in folders:
            folder = Path(parent, name)
            if not folder.is_symlink():
                folder.chmod(stat.S_IRWXU)
    shutil.rmtree(place)


def _find_link(side: Side, text: str) -> Path:
    """Return what `--link` names, in the user's checkout."""
    for top in (side.root / side.started, side.root):
        # a link in the checkout stays one: data often is a link to another disk
        path = Path(os.path.normpath(top / text))
        path = path.parent.resolve() / path.name
        if os.path.lexists(path):
            break
    else:
        tops = dict.fromkeys(str(top) for top in (side.root / side.started, side.root))
        problem = f"--link {text}: is not in {' or in '.join(tops)}"
        raise UsageError(problem, remedy="name a file or folder of the checkout that git ignores")
    if path == side.root or path.is_relative_to(side.root / ".git"):
        raise UsageError(f"--link {text}: the repository itself", remedy="name what git ignores in it")
    if not path.is_relative_to(side.root):
        problem = f"--link {text}: lies outside of the repository {side.root}"
        raise UsageError(problem, remedy="leave it out, and name it in the command by its absolute path")
    own = path.relative_to(side.root)
    if list_paths(side.root, ["--", f":(literal){own}"]):
        raise UsageError(f"--link {text}: is tracked by git, so each side has its own", remedy="leave it out")
    return path


def _clone(side: Side, folder: Path, links: Sequence[Path]) -> None:
    """Make the clone of a side, with links to what the sides share."""
    assert side.commit is not None
    folder.parent.mkdir(parents=True)
    if side.is_working_tree:
        _clone_working_tree(side.root, folder, links)
    else:
        _clone_commit(side.root, side.commit, folder)
        _clone_submodules(side.root, folder)
    for link in links:
        own = folder / link.relative_to(side.root)
        own.parent.mkdir(parents=True, exist_ok=True)
        check_inside(own, folder)
        if os.path.lexists(own):
            problem = f"--link {link.relative_to(side.root)}: is tracked by git in {side.name} {side.text}"
            raise UsageError(problem, remedy="leave it out")
        own.symlink_to(link)


def _clone_commit(source: Path, commit: str, folder: Path) -> None:
    """Make a repository that has the objects of `source`, with one commit checked out. `source`: a checkout, or the
    git folder of one.

    Not by `git clone`: of a shallow repository that copies all objects, and only of what a branch or tag leads to.
    """
    folder.mkdir()
    kind = ["--object-format=sha256"] if len(commit) > 40 else []
    run_git(folder, ["init", "--quiet", "--template=", *kind])
    objects = os.fsencode(find_git_path(source, "objects"))
    own = folder / ".git"
    (own / "objects" / "info").mkdir(exist_ok=True)
    (own / "objects" / "info" / "alternates").write_bytes(objects + b"\n")
    shallow = find_git_path(source, "shallow")
    if shallow.is_file():
        shutil.copyfile(shallow, own / "shallow")
    # versions that packages give themselves are made of tags; a damaged one is no reason to stop
    tags = run_git(source, ["for-each-ref", "--format=create %(refname) %(objectname)", "refs/tags"])
    ask_git(folder, ["update-ref", "--stdin"], given=tags)
    problem = ask_git(folder, ["checkout", "--quiet", "--detach", commit]).problem
    if not problem and (missing := list_paths(folder, ["--deleted"])):
        # git leaves out what it cannot read, without an exit code
        problem = f"{missing[0]} cannot be read"
    if problem:
        problem = f"commit {commit[:12]} of {source} cannot be checked out: {problem}"
        raise UsageError(problem, remedy="a partial clone may lack its files: git checkout it there once")
    _copy_lfs_files(source, folder)


def _copy_lfs_files(source: Path, folder: Path) -> None:
    """Put the files in place that Git LFS has fetched into the user's repository."""
    fetched = find_git_path(source, "objects").parent / "lfs" / "objects"
    if not fetched.is_dir():
        return
    for path in list_paths(folder, ["--", ":(attr:filter=lfs)"]):
        file = folder / path
        if file.is_symlink() or not file.is_file():
            continue
        digest = digest_in_lfs(file.read_bytes())
        content = fetched / digest[:2] / digest[2:4] / digest
        if digest and content.is_file():
            shutil.copyfile(content, file)


def _clone_submodules(source: Path, folder: Path) -> None:
    """Make those submodules of a clone that were initialised in `source`."""
    for path, commit in list_submodules(folder).items():
        checkout = source / path
        if not is_repository(checkout):
            # one of another branch, whose folder is not there now
            checkout = find_git_path(source, "modules") / path
        if not (is_repository(checkout) or (checkout / "HEAD").is_file()):
            continue
        if ask_git(checkout, ["cat-file", "-e", f"{commit}^{{commit}}"]).problem:
            remedy = f"git -C {source} submodule update --init {path}, with the revision checked out, fetches it"
            raise UsageError(f"submodule {path} in {source} has no commit {commit[:12]}", remedy=remedy)
        _make_empty(folder / path, folder)
        _clone_commit(checkout, commit, folder / path)
        _clone_submodules(checkout, folder / path)


def _clone_working_tree(source: Path, folder: Path, links: Sequence[Path]) -> None:
    """Make a clone of what is checked out, with what differs there from the commit, but for what is linked."""
    head = os.fsdecode(run_git(source, ["rev-parse", "--verify", "HEAD"])).strip()
    _clone_commit(source, head, folder)
    changes = []
    for path in list_changes(source):
        is_linked = any((source / path).is_relative_to(link) for link in links)
        if not is_linked:
            changes.append(path)
    copy_changes(source, changes, folder)
    for path in dict.fromkeys([*list_submodules(folder), *changes]):
        if is_repository(source / path):
            _make_empty(folder / path, folder)
            _clone_working_tree(source / path, folder / path, links)


def _make_empty(path: Path, folder: Path) -> None:
    """Remove the empty folder that git leaves in place of a submodule."""
    path.parent.mkdir(parents=True, exist_ok=True)
    check_inside(path, folder)
    if path.is_dir():
        path.rmdir()
