from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from tests.cli.ending import ending
from tests.conftest import slow

PROCESS_OF_A_GROUP = Path(__file__).parents[1] / "data" / "torch_profiler" / "cpu_gloo_rank1.pt.trace.json"
SHOW_KEYS = {"schema", "run", "overall", "steps", "ops", "kernels", "communication", "memory"}
DIFF_KEYS = {
    "schema",
    "baseline",
    "candidate",
    "environment",
    "overall",
    "ops",
    "kernels",
    "communication",
    "memory",
    "explanation",
}
CAPTURE_COLUMNS = {
    "rank",
    "duration_ns",
    "timeline",
    "e2e_ns",
    "compute_ns",
    "communication_ns",
    "exposed_communication_ns",
    "overlap_ns",
    "copy_ns",
    "exposed_copy_ns",
    "idle_ns",
    "kernel_count",
    "kernel_total_ns",
    "unlinked_kernel_total_ns",
    "peak_allocated_bytes",
    "peak_reserved_bytes",
}
OP_COLUMNS = {
    "name",
    "input_shapes",
    "input_types",
    "module",
    "calls",
    "host_total_ns",
    "host_self_ns",
    "device_total_ns",
    "device_self_ns",
}


def shown(tracker, *words):
    done = tracker("show", *words, "--format", "json")
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


def compared(tracker, *words):
    done = tracker("diff", *words, "--format", "json")
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


def test_latest_is_one_run_and_its_baseline_the_version_before(tracker, db):
    out = tracker("diff", "latest", "--db", db).out
    assert out.startswith("small_gpt, cpu, 3 -> 1 runs,")
    assert "Note: The baseline is the version before: v01 (run 1-3)." in out


def test_show_prints_the_contract_for_scripts(tracker, trace):
    document = shown(tracker, trace["v01"])
    assert document["schema"] == 1
    assert set(document) >= SHOW_KEYS
    assert set(document["overall"][0]) >= CAPTURE_COLUMNS
    assert set(document["steps"][0]) >= CAPTURE_COLUMNS | {"step"}
    assert set(document["ops"][0]) >= OP_COLUMNS
    assert [row["step"] for row in document["steps"]] == [3, 4, 5, 6, 7]
    row = document["overall"][0]
    parts = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")
    assert row["timeline"] == "host"
    assert sum(row[part] for part in parts) == row["e2e_ns"]


def test_same_file_is_shown_alike_from_disk_and_from_the_database(tracker, trace, db):
    stored, read = shown(tracker, "1", "--db", db), shown(tracker, trace["v01"])
    for key in SHOW_KEYS - {"schema", "run"}:
        assert stored[key] == read[key], key


def test_show_keeps_steps_apart_on_request(tracker, trace):
    whole, by_step = shown(tracker, trace["v01"]), shown(tracker, trace["v01"], "--by", "step")
    assert {row["step"] for row in by_step["ops"]} >= {3, 4, 5, 6, 7}
    assert sum(row["calls"] for row in by_step["ops"]) == sum(row["calls"] for row in whole["ops"])
    assert "step" not in whole["ops"][0]


def test_show_filters_by_op(tracker, trace):
    document = shown(tracker, trace["v01"], "--op", "aten::*mm")
    assert {row["name"] for row in document["ops"]} == {"aten::addmm", "aten::mm"}


FILTERS = {
    "--kind": ("all_reduce", ("communication",)),
    "--group": ("nothing", ("communication",)),
    "--min-us": ("100000000", ("ops", "kernels", "communication")),
}


@pytest.mark.parametrize("option", FILTERS)
def test_filter_that_lets_nothing_through_leaves_empty_tables(tracker, trace, option):
    value, tables = FILTERS[option]
    for document in (
        shown(tracker, trace["v01"], option, value),
        compared(tracker, trace["v01"], trace["v08"], option, value),
    ):
        assert [document[table] for table in tables] == [[]] * len(tables)


@pytest.mark.parametrize(("pattern", "roles"), [("d*", {"default"}), ("*", {"default"})])
def test_filter_by_group_takes_a_pattern_of_its_role(tracker, pattern, roles):
    words = (PROCESS_OF_A_GROUP, "--group", pattern)
    documents = (shown(tracker, *words), compared(tracker, PROCESS_OF_A_GROUP, *words))
    for document in documents:
        assert {row["group_role"] for row in document["communication"]} == roles
        assert document["ops"]


@pytest.mark.parametrize("pattern", ["tp", "D*"])
def test_a_group_that_is_not_there_is_an_error_that_names_those_that_are(tracker, pattern):
    for words in (("show",), ("diff", PROCESS_OF_A_GROUP)):
        done = tracker(*words, PROCESS_OF_A_GROUP, "--group", pattern)
        assert done.code == 2
        assert f"there is no group of collectives '{pattern}'" in done.err
        assert "there is default" in done.err


def test_details_of_a_path_name_the_path(tracker, trace, tmp_path, monkeypatch):
    (tmp_path / "my run.pt.trace.json.gz").write_bytes(trace["v01"].read_bytes())
    monkeypatch.chdir(tmp_path)
    last = ending(tracker("show", "my run.pt.trace.json.gz").out)
    assert "\nNext:\n  tracker show 'my run.pt.trace.json.gz' --details\n" in last


def test_diff_of_two_files_needs_no_database_and_leaves_nothing_behind(tracker, trace, tmp_path):
    done = tracker("diff", trace["v01"], trace["v08"])
    assert (done.code, done.err) == (0, "")
    assert "aten::gelu_backward, gelu -> mul, add, pow" in done.out
    assert "\x1b" not in done.out
    assert not list(tmp_path.iterdir())


def test_diff_prints_the_contract_for_scripts(tracker, db):
    document = compared(tracker, "v01", "v08", "--db", db)
    assert document["schema"] == 1
    assert set(document) >= DIFF_KEYS
    for key in ("ops", "overall"):
        assert any(name.startswith("baseline_") for name in document[key][0])
        assert any(name.startswith("candidate_") for name in document[key][0])
        assert "diff" in document[key][0]


def test_diff_finds_what_was_changed(tracker, db):
    """In v08 GELU was written out with tanh and pow: mul slower, pow and tanh added, gelu removed."""
    document = compared(tracker, "v01", "v08", "--match", "name", "--db", db)
    ops = {row["name"]: row for row in document["ops"]}
    assert ops["aten::mul"]["delta_ns"] > 5_000_000
    assert (ops["aten::pow"]["status"], ops["aten::tanh"]["status"]) == ("ADDED", "ADDED")
    assert (ops["aten::gelu"]["status"], ops["aten::gelu_backward"]["status"]) == ("REMOVED", "REMOVED")
    assert ops["aten::mul"]["candidate_calls"] > ops["aten::mul"]["baseline_calls"]
    assert document["explanation"]["delta_ns"] == pytest.approx(30e6, rel=0.5)


def test_diff_of_a_side_with_itself_is_all_zero(tracker, db):
    document = compared(tracker, "v01", "v01", "--db", db)
    assert document["environment"] == []
    assert {row["delta_ns"] for row in document["ops"]} == {0}
    assert {row["delta"] for row in document["overall"]} <= {0, None}


def test_op_map_joins_ops_of_two_names(tracker, db, tmp_path):
    names = tmp_path / "map.json"
    names.write_text(json.dumps({"aten::gelu": "aten::tanh"}))
    by_file = compared(tracker, "v01", "v08", "--match", "name", "--db", db, "--op-map", names)
    by_text = compared(tracker, "v01", "v08", "--match", "name", "--db", db, "--op-map", names.read_text())
    assert by_file == by_text
    mapped = next(row for row in by_file["ops"] if row["name"] == "aten::tanh")
    assert (mapped["baseline_name"], mapped["status"]) == ("aten::gelu", "both")


@pytest.mark.parametrize("words", [("--only", "overall"), ("--only", "operator,memory"), ("--only", "kernel")])
def test_only_selects_sections(tracker, db, words):
    assert tracker("diff", "v01", "v08", "--db", db, *words).code == 0


def test_unknown_section_is_a_usage_error(tracker, db):
    done = tracker("diff", "v01", "v08", "--db", db, "--only", "everything")
    assert (done.code, done.out) == (2, "")
    assert "operator" in done.err


@pytest.mark.parametrize("format", ["json", "xlsx", *map(slow, ("text", "markdown", "csv"))])
def test_output_goes_to_a_file_beside_the_text_on_screen(tracker, db, tmp_path, format):
    on_screen = tracker("diff", "v01", "v08", "--db", db).out
    done = tracker("diff", "v01", "v08", "--db", db, "--format", format, "-o", tmp_path / "report")
    assert done.out == on_screen
    assert done.err == f"written: {tmp_path / 'report'}\n"
    written = (tmp_path / "report").read_bytes()
    if format == "xlsx":
        assert written.startswith(b"PK")
    else:
        assert written.decode() == tracker("diff", "v01", "v08", "--db", db, "--format", format).out


def test_ending_of_the_file_chooses_the_format(tracker, db, tmp_path):
    tracker("diff", "v01", "v08", "--db", db, "-o", tmp_path / "diff.xlsx")
    assert (tmp_path / "diff.xlsx").read_bytes().startswith(b"PK")
    tracker("show", "1", "--db", db, "-o", tmp_path / "run.json")
    assert json.loads((tmp_path / "run.json").read_text())["schema"] == 1


def test_folder_as_output_gets_a_file_named_after_the_question(tracker, db, tmp_path):
    (tmp_path / "out").mkdir()
    tracker("diff", "v01", "v08", "--db", db, "--format", "xlsx", "-o", tmp_path / "out")
    tracker("show", "latest", "--db", db, "--format", "markdown", "-o", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["diff_v01_v08.xlsx", "show_latest.md"]


def test_top_limits_the_rows_on_screen(tracker, db):
    few = tracker("diff", "v01", "v08", "--db", db, "--only", "operator", "--top", "2").out
    many = tracker("diff", "v01", "v08", "--db", db, "--only", "operator", "--top", "0").out
    assert few.count("aten::") < many.count("aten::")


def test_what_a_reader_warns_of_is_a_note_where_a_path_is_shown_or_compared(tracker, tmp_path):
    """A log of which only the Perf Summary is left does not say how many steps there were."""
    row = "|   batch_cost   |   {0}   |   {0}   |   {0}   |"
    for name, seconds in (("a.txt", "0.02000"), ("b.txt", "0.03000")):
        head = f"{'=' * 44}Perf Summary{'=' * 44}\nTime Unit: s, IPS Unit: steps/s\n"
        (tmp_path / name).write_text(head + row.format(seconds) + "\n")
    note = "only the Perf Summary: its means stand for one step, their number is not stated"
    one, other = tmp_path / "a.txt", tmp_path / "b.txt"
    assert tracker("ingest", one, "--version", "v1", "--workload", "w").err == f"warning: {note}\n"
    assert f"Note: {note}" in " ".join(tracker("show", one).out.split())
    compared = json.loads(tracker("diff", one, other, "--format", "json").out)
    assert f"a.txt and b.txt: {note}" in compared["notes"]


def test_infinite_cell_of_a_perf_summary_leaves_the_bottleneck(tracker, tmp_path):
    """10 of 40 ms wait for data, and the smallest time of the reader is `inf`."""
    lines = [
        f"{'=' * 44}Perf Summary{'=' * 44}",
        "Time Unit: s, IPS Unit: steps/s",
        "|   reader_cost   |   0.01000   |   0.02000   |   inf   |",
        "|   batch_cost   |   0.04000   |   0.05000   |   0.03000   |",
    ]
    (tmp_path / "timer.txt").write_text("\n".join(lines) + "\n")
    shown = " ".join(tracker("show", tmp_path / "timer.txt").out.split())
    assert "40.00 ms per step" in shown
    assert "input bound: data loading is 25.0 % of the step time" in shown


def with_a_bad_row(trace, path):
    """A copy of a profile with one op that ends before it starts."""
    document = json.loads(gzip.decompress(trace.read_bytes()))
    ops = [event for event in document["traceEvents"] if event.get("cat") == "cpu_op"]
    document["traceEvents"].append({**ops[0], "dur": -1})
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_bad_rows_of_paths_are_left_out_where_the_user_says_so_as_in_ingest(tracker, trace, tmp_path):
    bad = with_a_bad_row(trace["v01"], tmp_path / "bad.pt.trace.json")
    for words in (("show", bad), ("diff", trace["v01"], bad)):
        refused = tracker(*words)
        assert refused.code == 2 and "--skip-bad-rows" in refused.err
        done = tracker(*words, "--skip-bad-rows")
        assert done.code == 0
        assert "1 events with impossible times were left out" in " ".join(done.out.split())
    assert "--skip-bad-rows" in ending(done.out)  # the command for all details reads the same files


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--op", "nosuch"),
            "there is no operator 'nosuch' in v01 or v08; tracker show v08 --only operator lists them",
        ),
        (("--op", "mul"), "there is no operator 'mul' in v01 or v08; did you mean aten::mul? tracker show v08"),
        (("--module", "Nope*"), "there is no module 'Nope*' in v01 or v08; "),
    ],
)
def test_a_name_that_no_side_has_is_an_error_with_those_like_it(tracker, db, words, message):
    done = tracker("diff", "v01", "v08", *words, "--db", db).plain
    assert (done.code, done.out) == (2, "")
    assert message in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--op", "nosuch"), "there is no operator 'nosuch' in run:1; tracker show run:1 --only operator lists them"),
        (("--module", "Nope*"), "there is no module 'Nope*' in run:1; "),
    ],
)
def test_a_name_that_a_shown_run_does_not_have_is_an_error(tracker, db, words, message):
    done = tracker("show", "run:1", *words, "--db", db).plain
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_a_baseline_that_is_a_version_is_called_by_its_label(tracker, db):
    lines = tracker("diff", "v08", "--baseline", "previous", "--db", db).out.splitlines()
    assert lines[1].startswith("v08 is 23.8 % slower than v01: ")
    assert lines[-1].startswith("  tracker diff --db ")
    assert lines[-1].endswith(" v08 --baseline previous -o diff.xlsx"), "the question as it was asked"


def test_show_of_a_version_is_the_run_of_its_median_step(tracker, db):
    text = tracker("show", "v08", "--db", db).out
    said = " ".join(text.partition("Note: v08 is ")[2].split())
    steps = {}
    for run in json.loads(tracker("runs", "--version", "v08", "--format", "json", "--db", db).out)["runs"]:
        shown = json.loads(tracker("show", f"run:{run['run_id']}", "--format", "json", "--db", db).out)
        steps[shown["run"]["step_ns"]] = run["run_id"]
    median = sorted(steps)[(len(steps) - 1) // 2]
    assert f"this is run:{steps[median]}, the run of the median step." in said
    # the step of the version is one number in show, diff and advise
    change = json.loads(tracker("diff", "v01", "v08", "--format", "json", "--db", db).out)["explanation"]
    step = f"{change['candidate_ns'] / 1e6:.2f} ms"
    assert f"The step of all 3 is {step}, their geometric mean." in said
    assert f"step {step}" in tracker("advise", "v08", "--db", db).out


def test_several_profiles_are_one_side(tracker, tmp_path, trace):
    before, after = (shutil.copy(trace[version], tmp_path / f"{version},1.json.gz") for version in ("v01", "v08"))
    # a path with a comma in it is that path
    assert "1 run each" in tracker("diff", before, after).out
    runs = ("run1.pt.trace.json.gz", "run2.pt.trace.json.gz", "run3.pt.trace.json.gz")
    sides = [",".join(str(one.parent / run) for run in runs) for one in trace.values()]
    text = tracker("diff", *sides).out
    assert "3 runs each" in text
    assert "v08/run1.pt.trace.json.gz and 2 more is " in text
    refused = tracker("diff", f"{trace['v01']},missing.json", trace["v08"])
    assert refused.code == 2
    assert refused.err.startswith("tracker: missing.json: no such file or folder; each of ")
