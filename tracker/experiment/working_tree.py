"""What of a checkout is not committed: found, hashed and copied; nothing is written into the checkout."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tracker.errors import UsageError
from tracker.experiment.repository import ask_git, run_git

_LFS_START: Final = b"version https://git-lfs.github.com/spec/"
_LFS_DIGEST: Final = b"oid sha256:"
_LFS_MOST_BYTES: Final = 1024
"""Of what git keeps in place of a file in Git LFS."""

_BLOCK_BYTES: Final = 1 << 20


def list_changes(root: Path, *, tracked_only: bool = False) -> list[str]:
    """Return the paths that differ from the commit that is checked out, in order: tracked files and submodules that
    were changed, added or deleted; without `tracked_only` also untracked files that git does not ignore.
    """
    untracked = ["--untracked-files=no", "--ignore-submodules=untracked"]
    if not tracked_only:
        untracked = ["--untracked-files=all", "--ignore-submodules=none"]
    changes = []
    for line in run_git(root, ["status", "--porcelain=v1", "-z", "--no-renames", *untracked]).split(b"\0"):
        state, path = line[:2], os.fsdecode(line[3:])
        if line and (state == b"??" or not _is_unchanged_in_lfs(root, path)):
            # an untracked repository in the repository ends in a slash
            changes.append(path.rstrip("/"))
    return sorted(changes)


def hash_working_tree(root: Path, changes: Sequence[str]) -> str:
    """Return a digest, 40 hexadecimal digits, of the tree that is checked out and of what differs from it."""
    digest = hashlib.sha1(run_git(root, ["rev-parse", "HEAD^{tree}"]), usedforsecurity=False)
    for path in changes:
        changed = root / path
        digest.update(os.fsencode(path) + b"\0")
        if changed.is_symlink():
            digest.update(b"link " + os.fsencode(os.readlink(changed)))
        elif changed.is_file():
            digest.update(f"file {changed.stat().st_mode & 0o100:o} {hash_file(changed)}".encode())
        elif is_repository(changed):
            digest.update(hash_working_tree(changed, list_changes(changed)).encode())
        digest.update(b"\0")
    return digest.hexdigest()


def copy_changes(root: Path, changes: Sequence[str], folder: Path) -> None:
    """Copy what differs in a checkout over a clone of its commit, and delete there what is deleted here.

    Repositories in the repository are left out.
    """
    # a folder may stand where a file or link was, and the other way round
    for path in changes:
        target = folder / path
        if target.is_symlink() or target.is_file():
            target.unlink()
            _remove_empty_folders(target.parent, folder)
    for path in changes:
        source, target = root / path, folder / path
        is_file = source.is_symlink() or source.is_file()
        if not is_file:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        check_inside(target, folder)
        shutil.copy2(source, target, follow_symlinks=False)


def is_repository(path: Path) -> bool:
    """Return whether a folder is the top of a repository, such as a submodule that was initialised."""
    return not path.is_symlink() and os.path.lexists(path / ".git")


def check_inside(path: Path, folder: Path) -> None:
    """Raise UsageError where the way to `path`, below `folder`, leads out of it through a link."""
    if not path.parent.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"{path.relative_to(folder)} lies behind a link that leads out of the repository")


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def digest_in_lfs(content: bytes) -> str:
    """Return the SHA-256 of the file that `content` stands for in Git LFS, "" where it stands for none."""
    if not content.startswith(_LFS_START) or len(content) > _LFS_MOST_BYTES:
        return ""
    for line in content.splitlines():
        if line.startswith(_LFS_DIGEST):
            return line.removeprefix(_LFS_DIGEST).decode("ascii", "replace").strip()
    return ""


def _is_unchanged_in_lfs(root: Path, path: str) -> bool:
    """Return whether a path that git calls changed is the file that the commit has in Git LFS, which was not asked."""
    file = root / path
    if file.is_symlink() or not file.is_file():
        return False
    size = ask_git(root, ["cat-file", "-s", f"HEAD:{path}"]).line
    if not size or int(size) > _LFS_MOST_BYTES:
        return False
    digest = digest_in_lfs(run_git(root, ["cat-file", "blob", f"HEAD:{path}"]))
    return bool(digest) and digest == hash_file(file)


def _remove_empty_folders(folder: Path, top: Path) -> None:
    while folder != top and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
