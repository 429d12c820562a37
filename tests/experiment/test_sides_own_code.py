"""Each side must have run its own code: an editable install would run the user's checkout on both."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.experiment.checkouts import RECORDS, Checkout, make_python, prepare, run_job
from tracker.errors import UsageError
from tracker.experiment.own_code import check_own_code
from tracker.experiment.setups import run_setup
from tracker.hooks.modules import loaded_files

JOB = f"import mypkg\n{RECORDS}"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Two versions of a package in a src/ layout, and of a job that has a hook."""
    made = Checkout(tmp_path / "trainer")
    made.write("pyproject.toml", "")
    made.save({"src/mypkg/__init__.py": "SPEED = 1", "scripts/train.py": JOB})
    made.save({"src/mypkg/__init__.py": "SPEED = 2"})
    return made


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """Where the processes of a run record their modules."""
    return tmp_path / "modules"


def record(modules: Path, **paths: Path | str) -> None:
    """Write what a process would record."""
    Path(f"{modules}.host.{len(list(modules.parent.iterdir()))}").write_bytes(
        msgspec.json.encode({name: [str(path)] for name, path in paths.items()})
    )


def test_editable_install_is_refused_until_setup_builds_a_copy(checkout, modules, tmp_path):
    python = make_python(tmp_path / "venv", searches=checkout.folder / "src")
    sides = prepare(tmp_path / "ab", checkout, "HEAD~1", "HEAD")
    run_job(sides[1], modules, "scripts/train.py", python=python)
    with pytest.raises(UsageError) as caught:
        check_own_code(sides[1], sides[0], modules)
    source = checkout.folder / "src"
    assert str(caught.value) == (
        f"candidate ran mypkg of another folder, not of its revision: {source}/mypkg/__init__.py; "
        'give --setup, such as --setup "pip install --no-deps --target . .", or start ab with '
        f"PYTHONPATH={source}, which becomes the folder src of each side"
    )
    for prepared, other, run in zip(sides, reversed(sides), ("a", "b"), strict=True):
        run_setup(prepared, "cp -r src/mypkg .", tmp_path / "setup.log", 60)
        run_job(prepared, tmp_path / run, "scripts/train.py", python=python)
        assert check_own_code(prepared, other, tmp_path / run)


def test_pythonpath_in_the_checkout_is_that_of_the_side(checkout, modules, tmp_path):
    """The remedy for a src/ layout that needs no build."""
    before, after = prepare(tmp_path / "ab", checkout, "HEAD~1", "HEAD")
    words = "-c", f"{JOB}print(mypkg.SPEED)"
    assert run_job(before, modules, *words, PYTHONPATH=str(checkout.folder / "src")) == "1"
    assert check_own_code(before, after, modules)


def test_script_in_a_folder_is_a_module_of_the_side(checkout, modules, tmp_path):
    checkout.save({"scripts/own.py": RECORDS})
    sides = prepare(tmp_path / "ab", checkout, "HEAD~1", "HEAD", started_in=checkout.folder / "scripts")
    run_job(sides[1], modules, "own.py")
    assert check_own_code(sides[1], sides[0], modules)


def test_script_of_the_checkout_is_refused(checkout, modules, tmp_path):
    script = checkout.write("scripts/own.py", RECORDS)
    checkout.save()
    before, after = prepare(tmp_path / "ab", checkout, "HEAD~1", "HEAD")
    run_job(after, modules, str(script))
    with pytest.raises(UsageError, match=f"candidate ran the script {script}, not that of its revision; name it in"):
        check_own_code(after, before, modules)


def test_module_of_the_other_side_is_refused(checkout, modules, tmp_path):
    before, after = prepare(tmp_path / "ab", checkout, "HEAD~1", "HEAD")
    record(modules, __main__=after.folder / "scripts/train.py")
    record(modules, helper=before.folder / "scripts/helper.py")
    with pytest.raises(UsageError, match="candidate ran helper of another folder"):
        check_own_code(after, before, modules)


def test_installed_copy_of_an_own_package_is_refused(checkout, modules, tmp_path):
    """Both sides would run it; other packages of the same venv, in the checkout, are as they are."""
    before, after = prepare(tmp_path / "ab", checkout, "HEAD~1", "HEAD")
    packages = checkout.folder / ".venv/lib/python3.11/site-packages"
    record(modules, torch=packages / "torch/__init__.py", src=after.folder / "src/a.py")
    assert check_own_code(after, before, modules)
    record(modules, mypkg=packages / "mypkg/__init__.py")
    with pytest.raises(UsageError, match=r'mypkg of another folder.*; give --setup, such as "?.* --target \. \."$'):
        check_own_code(after, before, modules)


def test_linked_code_is_shared(checkout, modules, tmp_path):
    checkout.write(".git/info/exclude", "deps\n")
    library = checkout.write("deps/lib/__init__.py", "")
    before, after = prepare(tmp_path / "ab", checkout, "HEAD~1", "HEAD", links=["deps"])
    record(modules, lib=library, __main__=after.folder / "scripts/train.py")
    assert check_own_code(after, before, modules)
    before, after = prepare(tmp_path / "again", checkout, "HEAD~1", "HEAD")
    with pytest.raises(UsageError, match="or --link deps/lib where both sides share it"):
        check_own_code(after, before, modules)


def test_folder_that_ran_the_checkout_is_refused(checkout, modules, tmp_path):
    checkout.git("worktree", "add", "-q", "--detach", str(tmp_path / "older"), "HEAD~1")
    before, after = prepare(tmp_path / "ab", checkout, str(tmp_path / "older"), "HEAD")
    record(modules, mypkg=checkout.folder / "src/mypkg/__init__.py")
    with pytest.raises(UsageError, match="baseline ran mypkg of another folder, not of its folder"):
        check_own_code(before, after, modules)


def test_folders_may_share_code_around_them(checkout, modules, tmp_path):
    for name in ("one", "two"):
        checkout.write(f"variants/{name}/train.py", "")
    before, after = prepare(tmp_path / "ab", checkout, "variants/one", "variants/two")
    record(modules, mypkg=checkout.folder / "src/mypkg/__init__.py", __main__=before.folder / "train.py")
    assert check_own_code(before, after, modules)


def test_package_of_a_folder_without_git_is_its_own(modules, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "src" / "mypkg").mkdir(parents=True)
        (tmp_path / name / "src" / "mypkg" / "__init__.py").touch()
        (tmp_path / name / "setup.py").touch()
    home = Checkout(tmp_path / "home")
    before, after = prepare(tmp_path / "ab", home, str(tmp_path / "one"), str(tmp_path / "two"))
    record(modules, mypkg="/opt/mypkg/__init__.py")
    with pytest.raises(UsageError, match=r'give --setup, such as --setup "pip install --no-deps --target \. \."$'):
        check_own_code(before, after, modules)


def test_nothing_is_known_without_a_hook(checkout, modules, tmp_path):
    before, after = prepare(tmp_path / "ab", checkout, "HEAD~1", "HEAD")
    run_job(before, modules, "-c", "pass")
    assert not check_own_code(before, after, modules)
    Path(f"{modules}.node.1").write_text("no JSON")
    record(modules, __main__="/opt/train.py")
    assert not check_own_code(before, after, modules)


def test_process_records_top_modules_and_files_of_namespaces(modules, checkout, tmp_path):
    """Neither the standard library nor a module in a package; a lazy module is not loaded by it."""
    whole = {"whole/__init__.py": "import whole.inner", "whole/inner.py": ""}
    checkout.save({"space/part/deep.py": "", "lazy.py": "print('loaded')", **whole})
    _, after = prepare(tmp_path / "ab", checkout, "HEAD~1", "HEAD")
    lines = (
        "import importlib.util, os, sys, space.part.deep, whole\n"
        "spec = importlib.util.find_spec('lazy')\n"
        "spec.loader = importlib.util.LazyLoader(spec.loader)\n"
        "sys.modules['lazy'] = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(sys.modules['lazy'])\n"
        "sys.modules['odd'] = 3\n"
    )
    assert run_job(after, modules, "-c", lines + RECORDS) == ""
    (recorded,) = modules.parent.glob("modules.*")
    found = msgspec.json.decode(recorded.read_bytes())
    folder = after.folder
    assert "tracker" in found and not found.keys() & {"os", "importlib", "odd", "__main__", "__future__"}
    assert {name: found[name] for name in ("space", "whole", "lazy")} == {
        "space": [f"{folder}/space/part/deep.py"],
        "whole": [f"{folder}/whole/__init__.py"],
        "lazy": [f"{folder}/lazy.py"],
    }


def test_profile_that_is_handed_over_records_modules(modules, tmp_path, monkeypatch):
    """A job that is killed afterwards has recorded them."""
    from tracker.hooks.job import Job

    job = Job({"TRACKER_MODULES": str(modules)}, deliver=False, version="v1", workload="w")
    job.hand_over(str(tmp_path / "profile.json"))
    (recorded,) = modules.parent.glob("modules.*")
    assert "tracker" in msgspec.json.decode(recorded.read_bytes())


def test_modules_without_a_file_are_left_out():
    assert loaded_files({"odd": 3, "built_in": type("", (), {"__file__": None})()}) == {}
