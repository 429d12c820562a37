"""What is built holds everything that runs: migrations, samples, SQL."""

from __future__ import annotations

import ast
import contextlib
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tracker

ROOT = Path(__file__).parents[1]
PARTS = (
    ("migrations", "*.py"),
    ("migrations", "*.mako"),
    ("tracker/samples", "*.json.gz"),
    ("tracker/samples", "*.toml"),
    ("tracker/store/sql", "*.sql"),
    ("tracker/reports/page", "*.*"),
    ("tracker", "*.py"),
    ("tracker", "*.[ch]"),
)


def files(folder, pattern):
    return [
        path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob(pattern) if "__pycache__" not in path.parts
    ]


def test_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == tracker.__version__


@pytest.mark.parametrize(("file", "extras"), [("constraints.txt", ("dask", "test")), ("oldest.txt", ("oldest",))])
def test_every_dependency_is_pinned_as_declared(file, extras):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]
    lines = (ROOT / "scripts" / file).read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    for one in map(Requirement, wanted):
        found = [pin for pin in pins if canonicalize_name(pin.name) == canonicalize_name(one.name)]
        assert found, f"{one.name} is not pinned: sh scripts/pin.sh"
        assert all(one.specifier.contains(each.version) for pin in found for each in pin.specifier), "sh scripts/pin.sh"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and a source distribution, built as `pip` would."""
    out = tmp_path_factory.mktemp("dist")
    build = "import sys; from hatchling.build import *; build_wheel(sys.argv[1]); build_sdist(sys.argv[1])"
    environment = {"PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", build, str(out)], cwd=ROOT, env=environment, check=True, timeout=300)
    return out


@pytest.mark.slow
def test_wheel_holds_everything_that_runs(built):
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, pattern in PARTS:
        wanted = {
            name.replace("migrations/", "tracker/migrations/") if folder == "migrations" else name
            for name in files(folder, pattern)
        }
        assert wanted, (folder, pattern)
        assert wanted <= names, f"the wheel lacks {sorted(wanted - names)}"
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
    assert not [name for name in names if name.startswith("tests/") or "__pycache__" in name]


@pytest.mark.slow
def test_wheel_holds_what_was_compiled_for_it(built):
    if shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0], path="/usr/bin:/bin") is None:
        pytest.skip("there is no C compiler")
    (wheel,) = built.glob("*.whl")
    assert "none-any" not in wheel.name
    inside = [name for name in zipfile.ZipFile(wheel).namelist() if "/_compiled" in name]
    # one module for the decoder, one for the nesting of spans
    assert [Path(name).suffix for name in sorted(inside)] == [".so", ".pyi", ".so", ".pyi"]


@pytest.mark.slow
def test_without_a_compiler_a_wheel_for_all_machines_is_built(built, tmp_path):
    build = "import sys; from hatchling.build import *; build_wheel(sys.argv[1])"
    environment = {"PATH": "/usr/bin:/bin", "CC": "/bin/false"}
    done = subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, env=environment, check=True,
                          timeout=300, capture_output=True, text=True)  # fmt: skip
    (wheel,) = tmp_path.glob("*-none-any.whl")
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".so")]
    assert "without its compiled decoder, so slower" in done.stdout + done.stderr


@pytest.mark.slow
def test_older_python_learns_which_one_is_required(tmp_path):
    """pip builds the wheel, and then reads in it that this Python is too old; Python 3.10 has no contextlib.chdir."""
    build = "import contextlib, sys; del contextlib.chdir; from hatchling.build import *; build_wheel(sys.argv[1])"
    environment = {"PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, env=environment, check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    (name,) = (one for one in zipfile.ZipFile(wheel).namelist() if one.endswith(".dist-info/METADATA"))
    assert "\nRequires-Python: >=3.11\n" in zipfile.ZipFile(wheel).read(name).decode()


def test_build_hook_is_loaded_by_older_pythons(monkeypatch):
    """What it needs of Python 3.11 is imported when it compiles."""
    monkeypatch.delattr(contextlib, "chdir")
    source = (ROOT / "scripts" / "build_native.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 8))
    assert runpy.run_path(str(ROOT / "scripts" / "build_native.py"))["NativeBuildHook"].PLUGIN_NAME == "custom"


@pytest.mark.slow
def test_source_distribution_holds_everything(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for folder, pattern in (*PARTS, ("tests", "*.py"), ("scripts", "*.sh"), ("scripts", "*.py"), ("scripts", "*.yml")):
        assert set(files(folder, pattern)) <= names
    assert set(files("docs", "*.md")) <= names
    assert {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml"} <= names


@pytest.mark.slow
def test_installed_wheel_makes_a_database_and_runs_the_demo(built, tmp_path):
    """Away from the repository, with the dependencies of this environment."""
    (wheel,) = built.glob("*.whl")
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(pip, check=True, timeout=300)
    environment = {"PYTHONPATH": str(target), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    for words in (["demo", "--keep", "demo.db"], ["db", "check", "--db", "demo.db"]):
        done = subprocess.run(
            [sys.executable, "-m", "tracker", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
