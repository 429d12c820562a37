"""What is built holds everything that runs: migrations, samples, SQL."""

from __future__ import annotations

import ast
import contextlib
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

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


LISTS = {"requirements.txt": (), "constraints.txt": ("dask", "test"), "oldest.txt": ("oldest",)}
"""What the scripts install -> the extras that it holds."""
ADVISORIES = {
    "h11": ("0.16", "CVE-2025-43859"), "jinja2": ("3.1.6", "CVE-2025-27516"), "starlette": ("0.49.1", "CVE-2025-62727"),
}  # fmt: skip
"""A package -> the first version without its last known weakness."""


def pins_of(file):
    """The pinned packages of a list, each with the hashes of its files."""
    text = (ROOT / "scripts" / file).read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [(Requirement(line.partition(" --hash=")[0]), line.count("--hash=sha256:")) for line in lines]


@pytest.mark.parametrize("file", LISTS)
def test_every_dependency_is_pinned_as_declared(file):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for extra in LISTS[file] for one in extras[extra])]
    pins = pins_of(file)
    assert all(hashes for _, hashes in pins), "sh scripts/pin.sh"
    for one in map(Requirement, wanted):
        found = [pin for pin, _ in pins if canonicalize_name(pin.name) == canonicalize_name(one.name)]
        assert found, f"{one.name} is not pinned: sh scripts/pin.sh"
        assert all(one.specifier.contains(each.version) for pin in found for each in pin.specifier), "sh scripts/pin.sh"


def test_what_builds_tracker_is_in_every_list():
    """It is installed from there, so that nothing is downloaded without a hash."""
    needed = {"editables", "hatchling", "setuptools"}
    for file in LISTS:
        assert needed <= {pin.name for pin, _ in pins_of(file)}


def test_what_runs_has_the_same_versions_with_the_tests():
    runs, tests = (
        {(pin.name, str(pin.specifier)) for pin, _ in pins_of(file)} for file in ("requirements.txt", "constraints.txt")
    )
    assert runs <= tests


def test_no_version_with_a_known_weakness_is_allowed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {one.name: one.specifier for one in map(Requirement, project["dependencies"])}
    for name, (fixed, advisory) in ADVISORIES.items():
        lowest = min(Version(one.version) for one in declared[name] if one.operator == ">=")
        assert lowest >= Version(fixed), f"{name}: {advisory}"


def test_licence_of_everything_that_is_installed_is_named():
    text = (ROOT / "docs" / "adopt.md").read_text().partition("| licence | packages |")[2]
    named = set(re.findall(r"[a-z][a-z0-9-]+", text))
    assert {canonicalize_name(pin.name) for pin, _ in pins_of("requirements.txt")} <= named


def test_papers_name_the_addresses_of_the_project():
    """They are those of nobody until somebody publishes it, all below one name that can be found and replaced."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    hosts = {urlsplit(url).hostname for url in project["urls"].values()}
    assert len(hosts) == 1
    (host,) = hosts
    assert f"security@{host}" in (ROOT / "SECURITY.md").read_text()
    assert f"https://{host}/" in (ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml").read_text()


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
    assert {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "pyproject.toml"} <= names


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
