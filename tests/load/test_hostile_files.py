"""Files made to hurt, through the whole command, in a process that may take 400 MB and 20 seconds: a clear error, or a
run whose numbers are right.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.load.conftest import rows
from tests.readers import ascend_databases, nsys_databases, paddle_traces, traces
from tracker.store import health, open_store

ROOT = Path(__file__).parents[2]
DEEP = "[" * 10_000 + "]" * 10_000
LONG = "n" * 10_000_000


class Limited:
    """`tracker ingest` into an empty SQLite database, within the limits; see limited.py."""

    def __init__(self, process, folder, template):
        self.process, self.folder, self.template = process, folder, template
        self.database = folder / "tracker.db"

    def ingest(self, path, *words):
        self.database.write_bytes(self.template.read_bytes())
        asked = ["ingest", str(path), "--version", "v1", "--workload", "toy", "--db", str(self.database), *words]
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def refused(self, path, *words):
        """What the one line of the refusal says; nothing is in."""
        code, out, err = self.ingest(path, *words)
        assert (code, out, err.count("\n")) == (2, "", 1), err[-2000:]
        assert len(err) < 1000
        with open_store(str(self.database)) as store:
            assert rows(store, "SELECT id FROM run") == []
        return err

    def taken(self, path, question):
        """The answer of the database, once the file is in."""
        code, _, err = self.ingest(path)
        assert code == 0, err[-2000:]
        with open_store(str(self.database)) as store:
            assert health.check(store) == []
            return [tuple(row) for row in rows(store, question)]


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    settings = tmp_path_factory.mktemp("settings") / "tracker.toml"
    settings.write_text("[limits]\nmax_bytes = 50_000_000\n")
    environ = {**os.environ, "TRACKER_CONFIG": str(settings), "OPENBLAS_NUM_THREADS": "1"}
    started = subprocess.Popen(
        [sys.executable, "-m", "tests.load.limited"],
        cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    yield started
    started.stdin.close()
    assert started.wait(60) == 0


@pytest.fixture
def limited(process, tmp_path, migrated_sqlite):
    return Limited(process, tmp_path, migrated_sqlite)


def torch(folder, *events):
    return traces.write(folder, [traces.op("aten::mm", 1, 2), *events])


@pytest.mark.slow
def test_gzip_bomb_is_refused_at_the_limit(limited, tmp_path):
    path = tmp_path / "a.pt.trace.json.gz"
    with gzip.open(path, "wb", 9) as file:
        file.write(b'{"schemaVersion": 1, "traceEvents": [')
        events = (json.dumps(traces.op("aten::mm", 1, 2)).encode() + b",\n") * 10_000
        for _ in range(300):
            file.write(events)
    # what stands between two events has a limit of its own
    assert path.stat().st_size < 2_000_000
    assert "larger than the limit of 50000000 bytes" in limited.refused(path)


@pytest.mark.parametrize("place", ["args", "event", "top"])
def test_deep_nesting_in_a_torch_trace(limited, tmp_path, place):
    path = torch(tmp_path)
    old, new = {
        "args": ('"args": {', '"args": {"x": DEEP, '),
        "event": ('"ph": "X"', '"x": DEEP, "ph": "X"'),
        "top": ('"schemaVersion"', '"x": DEEP, "schemaVersion"'),
    }[place]
    path.write_text(path.read_text().replace(old, new.replace("DEEP", DEEP), 1))
    assert "nested too deeply" in limited.refused(path)


def test_deep_nesting_in_a_paddle_trace(limited, tmp_path):
    path = paddle_traces.write(tmp_path, paddle_traces.event("Operator", "matmul", 0, 1000))
    path.write_text(path.read_text().replace('"args": {', '"args": {"x": ' + DEEP + ", ", 1))
    assert "nested too deeply" in limited.refused(path)


@pytest.mark.parametrize("name", ["communication.json", "trace_view.json", "../profiler_metadata.json"])
def test_deep_nesting_in_a_capture_of_ascend(limited, tmp_path, name):
    folder = ascend_text(tmp_path)
    (folder / "ASCEND_PROFILER_OUTPUT" / name).write_text('{"x": ' + DEEP + "}")
    said = limited.refused(folder)
    assert "nested too deeply" in said or "JSON" in said


def ascend_text(folder):
    import shutil

    name = "worker-1_4711_20250109073443012_ascend_pt"
    shutil.copytree(ROOT / "tests" / "data" / "ascend_text" / name, folder / name)
    return folder / name


TIMES = {"NaN": "NaN", "negative": "-1", "1e18": "1e18", "beyond double": "1e400"}


@pytest.mark.parametrize("field", ["ts", "dur"])
@pytest.mark.parametrize("value", TIMES.values(), ids=TIMES.keys())
def test_impossible_time_in_a_torch_trace(limited, tmp_path, field, value):
    path = torch(tmp_path, traces.op("aten::add", 123, 456))
    path.write_text(path.read_text().replace(f'"{field}": {123 if field == "ts" else 456}', f'"{field}": {value}'))
    if (field, value) == ("ts", "-1"):  # the clock of a trace may start anywhere
        assert limited.taken(path, "SELECT SUM(calls) FROM op") == [(2,)]
    elif value == "NaN":  # broken text, as profilers write it: one event is lost, counted
        assert limited.taken(path, "SELECT SUM(calls) FROM op") == [(1,)]
    else:
        said = limited.refused(path)
        assert "aten::add" in said or "out of range" in said or "NaN" in said


@pytest.mark.parametrize("value", TIMES.values(), ids=TIMES.keys())
def test_impossible_duration_in_a_paddle_trace(limited, tmp_path, value):
    path = paddle_traces.write(tmp_path, paddle_traces.event("Operator", "matmul", 0, 777_000))
    path.write_text(
        path.read_text().replace('"dur": 777.0', f'"dur": {value}').replace("[777.000 us]", f"[{value} us]")
    )
    limited.refused(path)


@pytest.mark.parametrize("value", ["NaN", "-1", "1e18", "1e400"])
def test_impossible_duration_in_a_table_of_ascend(limited, tmp_path, value):
    path = ascend_text(tmp_path) / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    head, first, *rest = path.read_text().splitlines(keepends=True)
    cells = first.split(",")
    cells[head.split(",").index("Duration(us)")] = value
    path.write_text("".join([head, ",".join(cells), *rest]))
    assert "kernel_details.csv" in limited.refused(path.parents[1])


@pytest.mark.parametrize("end", [-5, 10**18 * 9, 2**63 - 1])
def test_impossible_end_in_a_database_of_nsys(limited, tmp_path, end):
    tables = nsys_databases.one_step()
    tables["CUPTI_ACTIVITY_KIND_KERNEL"][0]["end"] = end
    assert "CUPTI_ACTIVITY_KIND_KERNEL" in limited.refused(nsys_databases.write(tmp_path / "report.sqlite", tables))


@pytest.mark.parametrize("end", [-5, 10**18 * 9, 2**63 - 1])
def test_impossible_end_in_a_database_of_ascend(limited, tmp_path, end):
    tables = ascend_databases.tables()
    tables["TASK"][0]["endNs"] = end
    assert "TASK" in limited.refused(ascend_databases.write_capture(tmp_path, tables))


@pytest.mark.slow
def test_name_of_ten_megabytes(limited, tmp_path):
    path = torch(tmp_path, traces.op(LONG, 10, 7))
    assert limited.taken(path, "SELECT COUNT(*), SUM(calls) FROM op") == [(2, 2)]


def test_name_that_is_no_utf_8(limited, tmp_path):
    path = torch(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"aten::mm", b"aten::\xff\xfe"))
    assert limited.taken(path, "SELECT SUM(calls) FROM op") == [(1,)]


def test_correlation_that_stands_twice_links_every_kernel_to_the_launch_of_its_device_order(limited, tmp_path):
    """Two launches and two kernels of one correlation: no time is lost or doubled."""
    path = torch(
        tmp_path,
        traces.op("aten::a", 10, 10), traces.launch(5, 12), traces.kernel("k", 100, 30, 5),
        traces.op("aten::b", 40, 10), traces.launch(5, 42), traces.kernel("k", 200, 40, 5),
    )  # fmt: skip
    assert limited.taken(path, "SELECT SUM(calls), SUM(total_ns) FROM kernel") == [(2, 70_000)]
