"""`tracker advise`, and where else its advice is told."""

from __future__ import annotations

import json

import pytest

from tests.advice.made import CPU, MS, V100, kernel, op, save
from tracker.store import open_store

SHAPE = (8, 96, 768)
FAST = [("aten::gelu", 2 * MS, {"input_shapes": str([list(SHAPE)]), "input_types": "float"})]
SLOW = [(f"aten::{name}", 5 * MS, {"input_shapes": str([list(SHAPE)]), "input_types": "float"})
        for name in ("tanh", "mul", "add")]  # fmt: skip
HOST = {"timeline": "host", "compute": 90, "idle": 4}


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "tracker.db"))
    return tmp_path / "tracker.db"


@pytest.fixture
def versions(tracker, database):
    """v1 has the operator that exists, v2 writes it out and is 26 ms slower, v3 has it again."""
    with open_store(str(database)) as store:
        for version, ops, step in (("v1", FAST, 100), ("v2", SLOW, 126), ("v3", FAST, 100)):
            for number in range(3):
                times = {**HOST, "duration": step + number / 10, "e2e": step + number / 10, "compute": step - 10}
                save(store, version, times=times, ops=ops, device=CPU, steps=5,
                     started_at_ns=10**18 + number * 10**12)  # fmt: skip
    return database


def test_a_baseline_shows_what_is_new(tracker, versions):
    lines = tracker("advise", "v1", "v2").out.splitlines()
    assert lines[1] == "one change can win at most 30.00 ms of 126.10 ms a step"
    (row,) = [line for line in lines if line.startswith("  K6")]
    assert " ".join(row.split()) == "K6 new: activation written out with tanh 30.00 ms 23.8 % high"
    assert "gelu(x, approximate='tanh')" in " ".join(lines)
    gone = tracker("advise", "v2", "v3").out
    (row,) = [line for line in gone.splitlines() if line.startswith("  K6")]
    # what was won is nothing that can be won
    assert " ".join(row.split()) == "K6 gone: activation written out with tanh (was 30.00 ms)"
    assert gone.splitlines()[1] == "1 piece of advice of the baseline is gone"


def test_nothing_new_between_alike_versions(tracker, versions):
    assert tracker("advise", "v1", "v3").out.splitlines()[1].startswith("no advice:")


def test_fail_on_counts_new_advice_alone(tracker, versions):
    assert tracker("advise", "v2", "--fail-on", "high").code == 1
    assert tracker("advise", "v1", "v2", "--fail-on", "high").code == 1
    assert tracker("advise", "v2", "v3", "--fail-on", "high").code == 0


def test_json_has_evidence_claims_and_what_was_asked(tracker, versions):
    found = json.loads(tracker("advise", "v2", "--rule", "k6", "--format", "json").out)
    (item,) = found["advice"]
    assert (item["rule"], item["gain_ns"], item["runs"]) == ("K6", 30 * MS, 3)
    assert [claim["op"] for claim in item["claims"]] == ["aten::add", "aten::mul", "aten::tanh"]
    assert sum(claim["ns"] for claim in item["claims"]) == 30 * MS
    assert found["efficiency"]["rows"] == []


@pytest.mark.parametrize("format", ["csv", "markdown", "html", "xlsx"])
def test_every_format_names_the_rule(tracker, versions, tmp_path, format):
    path = tmp_path / f"advice.{format}"
    assert tracker("advise", "v2", "-o", str(path), "--format", format).code == 0
    assert path.stat().st_size > 200
    if format != "xlsx":
        assert "K6" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("words", "error"), [
    (("v9",), "no version"), (("v2", "--rule", "K99"), "no rule 'K99'"), (("v1", "v2", "v3"), "3 sides"),
    (("v2", "--only", "speed"), "--only 'speed' must be one of"), (("./nothing.json",), "no such file"),
    (("v2", "--microbatches", "0"), "--microbatches"),
])  # fmt: skip
def test_wrong_words_are_one_line(tracker, versions, words, error):
    found = tracker("advise", *words)
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert error in found.err


def test_a_run_without_rows_says_what_is_missing(tracker, database):
    with open_store(str(database)) as store:
        save(store, "v1", times={"compute": None, "idle": None}, device=CPU)
    found = tracker("advise", "v1")
    assert found.code == 0
    assert "Operators and kernels: the run has totals alone" in found.out


def test_a_version_on_several_devices_is_no_mixture(tracker, database):
    with open_store(str(database)) as store:
        for device in (CPU, V100):
            save(store, "v1", times=HOST, ops=SLOW, device=device)
    found = tracker("advise", "v1")
    assert (found.code, found.out) == (2, "")
    assert "v1 has runs of several devices and configurations" in found.err
    assert tracker("advise", "v1@cpu").code == 0


def test_efficiency_is_of_one_run(tracker, database):
    product = op("aten::mm", (4300, 10_000), (10_000, 11_500))
    row = {key: value for key, value in product.items() if key != "name"}
    with open_store(str(database)) as store:
        run = save(store, ops=[("aten::mm", 2 * MS, row)], times={"compute": 60},
                   kernels=[kernel(product, 2, category="matmul")])  # fmt: skip
    shown = tracker("show", str(run), "--only", "efficiency").out
    assert "50.0 %" in shown  # 0.989 TFLOP in 2 ms on a device of 989 TFLOP/s
    found = tracker("diff", str(run), str(run), "--only", "efficiency")
    assert (found.code, found.err) == (
        2, "tracker: efficiency is of one run; tracker show RUN --only efficiency\n"
    )  # fmt: skip
    details = tracker("show", str(run), "--details").out
    assert "K16 mm far below what the device can do" in details
    assert "K16" not in tracker("show", str(run)).out
