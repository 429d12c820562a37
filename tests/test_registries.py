"""Readers and reports: adding one is a file and a word; a forgotten step fails here with a sentence that names it."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import pytest

from tests.factories import capture, record
from tracker import readers, reports
from tracker.profile import Device, Profile
from tracker.store import open_store, save_run

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
README = (ROOT / "README.md").read_text(encoding="utf-8")
REPORTS = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")


def names_of(room):
    """The modules and packages of `room` that are offered: those that do not start with `_`."""
    folder = Path(room.__file__).parent
    found = [path.stem for path in folder.glob("*.py")] + [path.parent.name for path in folder.glob("*/__init__.py")]
    return sorted(name for name in found if not name.startswith("_"))


def fixtures(name):
    """The profiles that belong to a reader: its test data, and the bundled samples, which are PyTorch traces."""
    folder = DATA / name
    found = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    if name == "torch_profiler":
        found += sorted((ROOT / "tracker" / "samples").rglob("*.pt.trace.json.gz"))
    return sorted(path for path in found if path.name != "README.md")


def test_every_module_is_in_names_and_every_name_has_a_module():
    assert list(readers.NAMES) == names_of(readers), "FORMATS of tracker.profile has to list the readers, sorted"


def test_every_other_module_of_the_readers_is_private():
    public = [name for name in names_of(readers) if name not in readers.NAMES]
    assert not public, f"{public} of readers must start with _ or be in FORMATS"


@pytest.mark.parametrize("name", readers.NAMES)
def test_reader_exports_the_contract(name):
    reader = import_module(f"tracker.readers.{name}")
    assert isinstance(reader.TITLE, str)
    assert reader.TITLE
    assert list(inspect.signature(reader.sniff).parameters)[:2] == ["path", "head"]
    assert list(inspect.signature(reader.read).parameters)[:2] == ["path", "options"]
    assert reader.__doc__, f"reader {name} needs a docstring"
    first = reader.__doc__.splitlines()[0]
    assert first.endswith("."), f"the docstring of reader {name} starts with one line that is a sentence"


@pytest.mark.parametrize("name", readers.NAMES)
def test_reader_has_fixtures(name):
    assert fixtures(name), f"reader {name} has no profiles under tests/data/{name}"


CASES = [(name, path) for name in readers.NAMES for path in fixtures(name)]


@pytest.mark.parametrize(("name", "path"), CASES, ids=[str(path.relative_to(ROOT)) for _, path in CASES])
def test_every_fixture_is_claimed_by_exactly_one_reader(name, path):
    from tracker.readers._source import read_head

    head = read_head(path)
    claims = [each for each in readers.NAMES if readers.load(each).sniff(path, head)]
    assert claims in ([name], []), f"{path.name} of {name} is claimed by {claims}"
    if not claims:
        # a part of a folder: then the folder has to be claimed
        folders = [parent for parent in path.parents if DATA in parent.parents]
        assert any(readers.load(name).sniff(parent, b"") for parent in folders), f"no reader claims {path}"


@pytest.mark.parametrize("name", readers.NAMES)
def test_profile_has_the_format_of_its_reader(name):
    """The judge compares only runs whose captures are of one format."""
    found = [found for found in readers.find(DATA / name) if found.format == name]
    assert found
    assert {readers.read(one).format for one in found} == {name}


def test_unknown_formats_are_a_bug_of_ours():
    """Runs of two formats are never compared: one that is mistyped would silence the judge."""
    with pytest.raises(ValueError, match=r"'op_summary\.csv' is no format of profiles"):
        Profile("op_summary.csv", "PROF_1", ())
    with open_store("sqlite://") as store, pytest.raises(ValueError, match="'torch' is no format of profiles"):
        save_run(store, record(), [capture(0)], formats=["torch"])


def test_unknown_vendors_are_a_bug_of_ours():
    with pytest.raises(ValueError, match="'Nvidia' is no vendor of devices"):
        capture(0, device=Device("Nvidia", "H100"))


@pytest.mark.parametrize("name", reports.NAMES)
def test_report_exports_the_contract(name):
    report = import_module(f"tracker.reports.{name}")
    assert isinstance(report.TITLE, str) and report.TITLE
    assert report.SUFFIX.startswith(".")
    assert hasattr(report, "render")
    assert report.__doc__, f"report {name} needs a docstring"


def test_no_two_reports_share_a_suffix():
    suffixes = [reports.suffix(name) for name in reports.NAMES]
    assert len(set(suffixes)) == len(suffixes)


@pytest.mark.parametrize("name", readers.NAMES)
def test_readme_lists_the_reader(name):
    assert f"| [`{name}`](docs/formats/{name}.md) | {readers.load(name).TITLE} |" in README, "run scripts/write_docs.py"


@pytest.mark.parametrize("name", reports.NAMES)
def test_docs_list_the_report(name):
    assert f"| `{name}` | `{reports.suffix(name)}` | {reports.title(name)} |" in REPORTS, "run scripts/write_docs.py"
