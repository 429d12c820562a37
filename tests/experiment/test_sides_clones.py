"""Clones of the sides: they hold what the revision has, and the user's repository stays as it is."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from tests.experiment.checkouts import Checkout, fingerprint, prepare
from tracker.errors import UsageError
from tracker.experiment.clones import remove_sides


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A repository with two versions of a module, in a folder with blanks whose name starts with a dash."""
    made = Checkout(tmp_path / "- my trainer")
    made.write(".gitignore", "data\n*.bin\n")
    made.save({"net.py": "WIDTH = 1", "old.py": ""})
    made.git("tag", "v1")
    (made.folder / "old.py").unlink()
    made.save({"net.py": "WIDTH = 2"})
    return made


def test_revision_is_checked_out(checkout, tmp_path):
    before, after = prepare(tmp_path / "ab", checkout, "v1", "HEAD")
    assert before.folder == tmp_path / "ab" / "baseline" / "- my trainer"
    assert (before.folder / "net.py").read_text() == "WIDTH = 1"
    assert (after.folder / "net.py").read_text() == "WIDTH = 2" and not (after.folder / "old.py").exists()
    clone = Checkout(before.folder, is_new=False)
    assert clone.git("describe", "--always", "--dirty", "--tags") == "v1" and not clone.git("remote")


def test_side_that_is_there_is_kept(checkout, tmp_path):
    """As for an experiment that is resumed: what was built in it stays."""
    before, _ = prepare(tmp_path / "ab", checkout, "v1", "HEAD")
    (before.folder / "built").touch()
    assert prepare(tmp_path / "ab", checkout, "v1", "HEAD")[0] == before and (before.folder / "built").exists()


def test_repository_stays_as_it_is(checkout, tmp_path):
    """With hooks and a monitor that would write, a file that looks changed, a submodule and a link."""
    add_submodule(checkout, tmp_path)
    checkout.write("data/a.txt", "a")
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        hook = checkout.write(f".git/hooks/{name}", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hook.chmod(0o755)
    checkout.git("config", "core.fsmonitor", f"touch {tmp_path}/ran; false")
    os.utime(checkout.folder / "net.py", (1, 1))
    checkout.write("new.py", "")
    before = fingerprint(checkout.folder)
    prepare(tmp_path / "ab", checkout, "v1", "HEAD", links=["data"])
    prepare(tmp_path / "dirty", checkout, "v1", "HEAD", links=["data"], dirty=True)
    remove_sides(tmp_path / "ab")
    assert fingerprint(checkout.folder) == before
    assert not (tmp_path / "ran").exists()


def test_hooks_of_all_repositories_do_not_run(checkout, tmp_path, monkeypatch):
    hook = tmp_path / "hooks" / "post-checkout"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    hook.chmod(0o755)
    (tmp_path / "config").write_text(f"[core]\nhooksPath = {hook.parent}\n[init]\ntemplateDir = {tmp_path}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    before, _ = prepare(tmp_path / "ab", checkout, "v1", "HEAD")
    assert not (tmp_path / "ran").exists() and not (before.folder / ".git" / "hooks").exists()


def test_variables_of_another_repository_are_ignored(checkout, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    before, _ = prepare(tmp_path / "ab", checkout, "v1", "HEAD")
    assert (before.folder / "net.py").read_text() == "WIDTH = 1" and not (tmp_path / "index").exists()


def test_working_tree_is_copied(checkout, tmp_path):
    """Changed, staged, deleted and untracked files, a file that is a folder by now, links; not what git ignores."""
    checkout.save({"gone.py": "", "becomes.py": "", "staged.py": "1"})
    checkout.write("net.py", "WIDTH = 3")
    checkout.write("staged.py", "2")
    checkout.git("add", "staged.py")
    for name in ("gone.py", "becomes.py"):
        (checkout.folder / name).unlink()
    checkout.write("becomes.py/inner.py", "inner")
    checkout.write("new folder/new.py", "new").chmod(0o755)
    (checkout.folder / "link").symlink_to("net.py")
    checkout.write("data/large.bin", "")
    _, after = prepare(tmp_path / "ab", checkout, "v1", "HEAD", dirty=True)
    found = {str(path.relative_to(after.folder)) for path in after.folder.rglob("*") if ".git" not in path.parts}
    assert found == {
        ".gitignore", "net.py", "staged.py", "becomes.py", "becomes.py/inner.py", "new folder", "new folder/new.py",
        "link",
    }  # fmt: skip
    assert (after.folder / "link").is_symlink() and (after.folder / "link").read_text() == "WIDTH = 3"
    assert (after.folder / "staged.py").read_text() == "2"
    assert os.access(after.folder / "new folder" / "new.py", os.X_OK)


def test_data_is_made_visible(checkout, tmp_path):
    """A folder, and a file named from where ab was started; the data itself may be a link to another disk."""
    checkout.save({"scripts/train.py": ""})
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "a.txt").write_text("a")
    (checkout.folder / "data").symlink_to(tmp_path / "disk")
    checkout.write("scripts/weights.bin", "w")
    started_in = checkout.folder / "scripts"
    links = ["data", "weights.bin"]
    _, after = prepare(tmp_path / "ab", checkout, "v1", "HEAD", links=links, started_in=started_in)
    assert (after.folder / "data" / "a.txt").read_text() == "a"
    assert (after.folder / "scripts" / "weights.bin").read_text() == "w"


def test_data_may_be_named_by_its_absolute_path(checkout, tmp_path):
    """Through a link to the checkout, as the home folder of a cluster often is one."""
    (tmp_path / "home").symlink_to(checkout.folder)
    checkout.write("data/a.txt", "a")
    _, after = prepare(tmp_path / "ab", checkout, "v1", "HEAD", links=[f"{tmp_path}/home/data/"])
    assert (after.folder / "data").readlink() == checkout.folder / "data"


def test_linked_data_is_not_copied_with_the_working_tree(checkout, tmp_path):
    checkout.write("corpus/a.txt", "a")
    checkout.write("net.py", "WIDTH = 3")
    _, after = prepare(tmp_path / "ab", checkout, "v1", "HEAD", links=["corpus"], dirty=True)
    assert (after.folder / "corpus").is_symlink()


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("nothing", "is not in "),
        ("../outside", "lies outside of the repository"),
        ("out/inner", "lies outside of the repository"),
        ("net.py", "is tracked by git, so each side has its own; leave it out"),
        ("old.py", "is tracked by git in baseline v1"),
        (".", "the repository itself"),
        (".git/config", "the repository itself"),
    ],
)
def test_wrong_link_is_refused(checkout, tmp_path, link, problem):
    (tmp_path / "outside" / "inner").mkdir(parents=True)
    (checkout.folder / "out").symlink_to(tmp_path / "outside")
    checkout.write("old.py", "an untracked file by now")
    with pytest.raises(UsageError, match=f"--link {link}: {problem}"):
        prepare(tmp_path / "ab", checkout, "v1", "HEAD", links=[link])
    assert not (tmp_path / "ab" / "baseline").exists()


def test_link_through_a_link_of_the_revision_is_refused(checkout, tmp_path):
    """In the revision, the folder of the data was a link that leads out of the clone."""
    (tmp_path / "outside").mkdir()
    (checkout.folder / "cache").symlink_to(tmp_path / "outside")
    checkout.save()
    (checkout.folder / "cache").unlink()
    checkout.save({"cache/readme.py": ""})
    checkout.write("cache/a.bin", "")
    with pytest.raises(UsageError, match="behind a link that leads out of the repository"):
        prepare(tmp_path / "ab", checkout, "HEAD~1", "HEAD", links=["cache/a.bin"])
    assert not list((tmp_path / "outside").iterdir())


def test_shallow_clone_is_enough(checkout, tmp_path):
    checkout.save({"net.py": "WIDTH = 3"})
    words = ["clone", "-q", "--depth", "2", f"file://{checkout.folder}", str(tmp_path / "shallow")]
    subprocess.run(["git", *words], check=True)
    shallow = Checkout(tmp_path / "shallow", is_new=False)
    before, _ = prepare(tmp_path / "ab", shallow, "HEAD~1", "HEAD")
    assert (before.folder / "net.py").read_text() == "WIDTH = 2"
    assert Checkout(before.folder, is_new=False).git("rev-list", "--count", "HEAD") == "1"
    with pytest.raises(UsageError, match="this clone is shallow: git fetch --unshallow"):
        prepare(tmp_path / "ab", shallow, "v1", "HEAD")


def test_worktree_is_a_checkout_too(checkout, tmp_path):
    checkout.git("worktree", "add", "-q", "--detach", str(tmp_path / "tree"), "v1")
    tree = Checkout(tmp_path / "tree", is_new=False)
    tree.write("net.py", "WIDTH = 5")
    before, after = prepare(tmp_path / "ab", tree, "main", "HEAD", dirty=True)
    assert (before.folder / "net.py").read_text() == "WIDTH = 2"
    assert (after.folder / "net.py").read_text() == "WIDTH = 5"


def add_submodule(checkout: Checkout, folder: Path, *, with_inner: bool = False) -> Checkout:
    """Commit a submodule `lib`, perhaps with one of its own; that of the checkout."""
    outer = Checkout(folder / "lib")
    allowed = ["-c", "protocol.file.allow=always"]
    if with_inner:
        inner = Checkout(folder / "inner")
        inner.save({"inner.py": "1"})
        outer.git(*allowed, "submodule", "--quiet", "add", str(inner.folder), "inner")
    outer.save({"lib.py": "1"})
    checkout.git(*allowed, "submodule", "--quiet", "add", str(outer.folder), "lib")
    checkout.git(*allowed, "submodule", "--quiet", "update", "--init", "--recursive")
    checkout.save()
    return Checkout(checkout.folder / "lib", is_new=False)


def test_submodules_are_those_of_the_revision(checkout, tmp_path):
    submodule = add_submodule(checkout, tmp_path)
    submodule.save({"lib.py": "2"})
    checkout.save()
    before, after = prepare(tmp_path / "ab", checkout, "HEAD~1", "HEAD")
    assert [(side.folder / "lib" / "lib.py").read_text() for side in (before, after)] == ["1", "2"]


def test_submodule_of_another_branch_is_found(checkout, tmp_path):
    """It is not in the checkout by now, but git keeps what was fetched."""
    add_submodule(checkout, tmp_path, with_inner=True)
    checkout.git("checkout", "-q", "--detach", "v1")
    subprocess.run(["rm", "-rf", str(checkout.folder / "lib")], check=True)
    before, _ = prepare(tmp_path / "ab", checkout, "main", "HEAD")
    assert (before.folder / "lib" / "inner" / "inner.py").read_text() == "1"


def test_submodule_without_the_commit_is_refused(checkout, tmp_path):
    add_submodule(checkout, tmp_path)
    checkout.git("update-index", "--cacheinfo", f"160000,{'1' * 40},lib")
    checkout.commit("points to what was never fetched")
    checkout.git("checkout", "-q", "--detach", "HEAD~1")
    with pytest.raises(UsageError, match=r"submodule lib in .* has no commit 111111111111; git -C .* submodule update"):
        prepare(tmp_path / "ab", checkout, "main", "HEAD")


def test_submodule_that_was_never_fetched_stays_empty(checkout, tmp_path):
    add_submodule(checkout, tmp_path)
    subprocess.run(["git", "clone", "-q", str(checkout.folder), str(tmp_path / "again")], check=True)
    _, after = prepare(tmp_path / "ab", Checkout(tmp_path / "again", is_new=False), "v1", "HEAD")
    assert not list((after.folder / "lib").iterdir())


def test_changed_submodule_is_part_of_the_working_tree(checkout, tmp_path):
    submodule = add_submodule(checkout, tmp_path, with_inner=True)
    submodule.write("lib.py", "3")
    submodule.write("inner/new.py", "new")
    with pytest.raises(UsageError, match="not committed"):
        prepare(tmp_path / "ab", checkout, "v1", "HEAD")
    _, after = prepare(tmp_path / "ab", checkout, "v1", "HEAD", dirty=True)
    assert (after.folder / "lib" / "lib.py").read_text() == "3"
    assert (after.folder / "lib" / "inner" / "new.py").read_text() == "new"


def test_fetched_files_of_lfs_are_in_place(checkout, tmp_path):
    """Without Git LFS: its program writes into the repository, and fetches. Such a file is not changed either."""
    content = "weights " * 200
    digest = hashlib.sha256(content.encode()).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n"
    checkout.write(".gitattributes", "*.pt filter=lfs\n")
    checkout.write("weights.pt", pointer)
    checkout.save({"net.py": "WIDTH = 3"})
    checkout.write(f".git/lfs/objects/{digest[:2]}/{digest[2:4]}/{digest}", content)
    checkout.git("config", "filter.lfs.clean", f"touch '{tmp_path}/ran'; false")
    checkout.git("config", "filter.lfs.required", "true")
    checkout.write("weights.pt", content)
    _, after = prepare(tmp_path / "ab", checkout, "v1", "HEAD")
    assert (after.folder / "weights.pt").read_text() == content and not (tmp_path / "ran").exists()


def test_missing_objects_are_said(checkout, tmp_path):
    """As in a partial clone, which has not fetched the files of each commit."""
    blob = checkout.git("rev-parse", "v1:net.py")
    (checkout.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(UsageError, match=r"commit \w{12} of .* cannot be checked out: .*partial clone may lack"):
        prepare(tmp_path / "ab", checkout, "v1", "HEAD")


def test_place_that_cannot_be_written_is_said(checkout, tmp_path):
    (tmp_path / "ab").write_text("a file")
    with pytest.raises(UsageError, match=r"baseline v1 cannot be cloned: .*Not a directory"):
        prepare(tmp_path / "ab", checkout, "v1", "HEAD")


def test_clones_are_removed_and_links_not_followed(checkout, tmp_path):
    checkout.write("data/a.txt", "a")
    before, _ = prepare(tmp_path / "ab", checkout, "v1", "HEAD", links=["data"])
    locked = before.folder / "built"
    locked.mkdir()
    (locked / "a.so").touch(0o400)
    (locked / "data").symlink_to(checkout.folder / "data")
    locked.chmod(0o500)
    mode = (checkout.folder / "data").stat().st_mode
    remove_sides(tmp_path / "ab")
    assert not (tmp_path / "ab").exists()
    assert (checkout.folder / "data" / "a.txt").exists() and (checkout.folder / "data").stat().st_mode == mode
    remove_sides(tmp_path / "ab")


def test_place_that_is_a_link_is_not_followed(checkout, tmp_path):
    (tmp_path / "ab").symlink_to(checkout.folder)
    remove_sides(tmp_path / "ab")
    assert checkout.folder.exists() and not (tmp_path / "ab").is_symlink()
