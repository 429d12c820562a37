"""The package from Python: every option is a named argument, and every result is short to look at."""

from __future__ import annotations

import html
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import get_origin

import numpy as np
import pandas as pd
import pytest

import tracker
from tests.test_intake import write_trace
from tracker import results
from tracker.errors import SourceError, TrackerError, UsageError
from tracker.intake import IngestOptions
from tracker.results.options import declared

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "tracker" / "samples"
TWO_SIDES = {
    "with_flame", "baseline_steps", "candidate_steps", "max_kernels", "single_kernels", "op_map", "only", "by", "depth",
    "force",
}  # fmt: skip
READING = {"format", "flow_category", "allow_partial", "skip_bad_rows", "max_bytes", "on_progress"}
OF_OUR_OWN = {"as_stored", "again", "read_all_with", "ranks_handed_over", "experiment"}
"""What our own callers of an ingest say."""
FILLS = {
    tracker.diff: (results.DiffOptions, None),
    tracker.matrix: (results.DiffOptions, set(results.DiffOptions.__struct_fields__) - TWO_SIDES),
    tracker.show: (results.ShowOptions, None),
    tracker.calls: (results.CallsOptions, None),
    tracker.history: (results.HistoryOptions, None),
    tracker.log: (results.LogOptions, None),
    tracker.findings: (results.FindingsOptions, None),
    tracker.calibrate: (results.CalibrateOptions, None),
    tracker.ingest: (IngestOptions, set(IngestOptions.__struct_fields__) - OF_OUR_OWN),
    tracker.examine: (IngestOptions, READING),
}
WIDER = {  # one text, or one number, is taken where several may stand
    "tuple[str, ...]": "str | Iterable[str]",
    "tuple[str, ...] | None": "str | Iterable[str] | None",
    "tuple[int, ...]": "int | Iterable[int]",
}
OTHERWISE = {("history", "key"): "str | int | None", ("ingest", "otherwise"): "Sidecar | None"}


def written(hint):
    """A type as an annotation has it: `int | None`, without the declaration of its option."""
    text = re.sub(r"\b(?:\w+\.)+(?=\w)", "", str(hint))
    return getattr(hint, "__name__", text) if get_origin(hint) is None and isinstance(hint, type) else text


@pytest.mark.parametrize("function", FILLS, ids=lambda function: function.__name__)
def test_options_of_a_function_are_those_of_its_struct(function):
    kind, only = FILLS[function]
    types = {name: found for name, found in declared(kind).items() if only is None or name in only}
    parameters = inspect.signature(function).parameters
    assert set(types) <= set(parameters)
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    for name, found in types.items():
        expected = written(found.kind) + (" | None" if found.is_optional and found.kind is not object else "")
        expected = OTHERWISE.get((function.__name__, name), WIDER.get(expected, expected))
        assert found.kind is object or parameters[name].annotation.replace('"', "'") == expected, name
        if (function.__name__, name) != ("ingest", "otherwise"):
            assert parameters[name].default == getattr(kind(), name), name


def test_dir_offers_only_public_names():
    assert dir(tracker) == sorted(tracker.__all__)
    assert {"Any", "Iterable", "annotations"}.isdisjoint(dir(tracker))
    for name in tracker.__all__:
        assert getattr(tracker, name) is not None


@pytest.fixture
def trace(tmp_path):
    return write_trace(tmp_path / "a.json")


def test_one_word_is_not_taken_letter_by_letter(trace):
    assert tracker.show(trace, by="op").options.by == ("op",)
    assert tracker.diff(trace, trace, only="operator", ranks=0).options.only == ("operator",)
    assert tracker.diff(trace, trace, ranks=np.int64(0)).options.ranks == (0,)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda path: tracker.show(path, dept=3), ["dept"]),
        (lambda path: tracker.show(path, depth="3"), ["depth", "'3'", "whole number"]),
        (lambda path: tracker.show(path, by=7), ["by", "7", "text"]),
        (lambda path: tracker.show(path, by="opp"), ["opp", "module, phase, op, kernel"]),
        (lambda path: tracker.show(path, allow_partial="yes"), ["allow_partial", "'yes'"]),
        (lambda path: tracker.show(path, store="x.db"), ["store", "tracker.open_store"]),
        (lambda path: tracker.diff(path, path, op_map=["a"]), ["op_map", "KEY"]),
        (lambda path: tracker.diff(path, 3), ["3", "path"]),
        (lambda path: tracker.runs(state="gone"), ["gone", "active, excluded, deleted, all"]),
        (lambda path: tracker.examine(path, max_bytes=None), ["max_bytes", "None"]),
        (lambda path: tracker.ingest(3, version="a"), ["3", "path"]),
        (lambda path: tracker.show(path).to_pandas("opz"), ["opz", "ops, "]),
    ],
)
def test_a_wrong_option_or_value_is_named(trace, call, names):
    with pytest.raises((TypeError, TrackerError)) as raised:
        call(trace)
    assert all(name in str(raised.value) for name in names), raised.value


def test_ingest_and_all_questions_take_the_default_database(trace, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "own.db"))
    made = tracker.ingest(trace, version="v1", workload="toy", configuration={"batch": 32})
    assert (made["version"].tolist(), (tmp_path / "own.db").exists()) == (["v1"], True)
    assert tracker.runs(tag=None)["configuration"].tolist() == ["batch=32"]
    assert tracker.versions("toy")["version"].tolist() == ["v1"]
    assert tracker.thresholds().empty and tracker.findings(workload="toy").findings.empty
    assert tracker.status().profiles == () and tracker.log().workload == "toy"
    with pytest.raises(UsageError, match="finding 7"):
        tracker.explain(7)


@pytest.fixture(scope="module")
def everything():
    """A result of every kind, from the bundled profiles."""
    with tracker.open_store("sqlite://") as store:
        for label in ("v01", "v08"):
            tracker.ingest(SAMPLES / label, version=label, workload="small_gpt", store=store)
        compared = tracker.diff("v01", "v08", store=store, by="op")
        number = int(tracker.findings(store=store).findings["finding_id"][0])
        return [
            compared,
            compared.explanation,
            tracker.matrix("v01", "v08", "run:1", store=store),
            tracker.show("run:1", store=store),
            tracker.log(store=store),
            tracker.history("step", store=store),
            tracker.findings(store=store, states=results.STATES, every=True),
            tracker.explain(number, store=store),
            tracker.calibrate([f"run:{number}" for number in range(1, 7)], store=store, splits=1),
            tracker.status(store=store),
            tracker.examine([SAMPLES / "v01", ROOT / "pyproject.toml"]),
        ]


def test_explain_takes_what_the_command_takes():
    """A number, its text, or an incident: the findings that `tracker explain I-1` prints, in its order."""
    with tracker.open_store("sqlite://") as store:
        for label in ("v01", "v08"):
            tracker.ingest(SAMPLES / label, version=label, workload="small_gpt", store=store)
        found = tracker.findings(store=store)
        number = int(found.findings["finding_id"][0])
        assert tracker.explain(str(number), store=store).finding == tracker.explain(number, store=store).finding
        every = tracker.explain("I-1", store=store)
        own = found.findings[found.findings["incident_id"] == 1]
        assert [one.finding.finding_id for one in every] == own["finding_id"].tolist()
        assert all(one.finding.incident_id == 1 for one in every) and len(every) > 1
        for wrong, words in (("I-99", "no incident I-99"), ("x", "'x' is no finding"), ("-1", "no finding")):
            with pytest.raises(UsageError, match=words):
                tracker.explain(wrong, store=store)


def test_ingest_keeps_going_past_what_cannot_be_read(trace, tmp_path):
    (tmp_path / "bad.json").write_text('{"traceEvents": [{"ph": "X"')
    with tracker.open_store("sqlite://") as store:
        made = tracker.ingest(tmp_path, version="v1", workload="toy", store=store, keep_going=True)
        assert (len(made), len(tracker.runs(store=store))) == (1, 1)


def test_every_result_displays_in_little_room(everything):
    for result in everything:
        name = type(result).__name__
        assert len(repr(result)) < 400 and "\n" not in repr(result), name
        assert repr(result).startswith(f"<{name}: "), repr(result)
        # style and script of the charts are 13 kB of it
        assert len(result._repr_html_().encode()) < 80_000, name


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(everything):
    shown = everything[0]._repr_html_()
    assert shown.startswith("<p><b>v08 is 23.8 % slower than v01: 99.92 -&gt; 123.70 ms per step")
    page = html.unescape(
        re.search(r'<iframe sandbox="allow-scripts" style="[^"]*" srcdoc="([^"]*)"></iframe>', shown)[1]
    )
    assert page.startswith("<!doctype html>") and "<svg" in page


def test_a_result_writes_itself_in_the_format_of_the_ending(everything, tmp_path):
    compared = everything[0]
    for name, begins in (("x.html", b"<!doctype html>"), ("x.xlsx", b"PK"), ("x.json", b"{"), ("x.md", b"#")):
        compared.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().lower().startswith(begins.lower()), name
    with pytest.raises(UsageError, match=r"x\.tar ends in \.tar, which is not a report format; choose from .*\.html"):
        compared.save(tmp_path / "x.tar")
    with pytest.raises(UsageError, match="has no ending"):
        compared.save("x")
    with pytest.raises(SourceError, match="there is no folder"):
        compared.save(tmp_path / "missing" / "x.html")


def test_a_name_from_a_profile_is_escaped_in_a_notebook(tmp_path):
    shown = tracker.show(write_trace(tmp_path / "<img src=x>.json"))
    # escaped on the page, and the page in the frame
    assert "&amp;lt;img" in shown._repr_html_() and "<img" not in shown._repr_html_()


def test_to_pandas_gives_one_table_or_all(everything):
    compared = everything[0]
    assert compared.to_pandas("ops").equals(compared.ops)
    whole = compared.to_pandas()
    assert {*results.DIFF_COLUMNS, "tree"} <= set(whole)
    assert {"incidents", "findings", "environment", "lines", "budgets"} == set(everything[6].to_pandas())
    for result in everything:
        tables = result.to_pandas()
        assert all(isinstance(frame, pd.DataFrame) for frame in tables.values()), type(result)
    captures = everything[-1].to_pandas("captures")
    assert captures["steps"].tolist() == [5, 5, 5]
    failures = everything[-1].to_pandas("failures")
    assert (len(failures), "remedy" in failures) == (0, True)


def test_a_frame_that_is_changed_leaves_the_result_as_it_was(everything):
    shown = everything[3]
    names = list(shown.ops["name"])
    frame = shown.to_pandas("ops")
    frame["name"] = "gone"
    assert list(shown.ops["name"]) == names


@pytest.mark.slow
def test_a_user_script_passes_mypy(tmp_path):
    """The package is typed: a mistake in an option is an error of the checker too."""
    script = tmp_path / "script.py"
    script.write_text(
        "import tracker\n"
        "from tracker.results import Diff\n"
        "def compare(a: str, b: str) -> Diff:\n"
        '    return tracker.diff(a, b, by="op", ranks=0, match="name")\n'
        'print(compare("a", "b").explanation.headline, tracker.findings(states="new").hidden)\n'
        'tracker.diff("a", "b", dept=3)\n'
        'tracker.show("a", depth="3")\n'
    )
    command = (sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", tmp_path, script)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line.partition("script.py:")[2] for line in done.stdout.splitlines() if ": error:" in line]
    assert [line.split(":")[0] for line in errors] == ["6", "7"], done.stdout + done.stderr
    assert '"dept"' in errors[0] and '"depth"' in errors[1]
