"""What a change costs: a newcomer's edits are made in a copy, which then does what they were for.

Files and places that are written by hand are counted; what `scripts/write_docs.py` writes is not. An edit whose place
is gone fails by the name of its file.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tracker.store.schema import SCHEMA_HEAD

ROOT = Path(__file__).parents[1]
NEXT = f"{int(SCHEMA_HEAD) + 1:04}"
LEVELS = "tracker/schema/levels.py"

Edits = dict[str, list[tuple[str, str]]]
"""File -> texts behind which something is added, and what; without such a text it is a new file."""

STORED_COLUMN: Edits = {
    LEVELS: [
        (
            """"sum", "kernels that were launched before the event ahead of them on the stream ended: the "
               "device had work"),
""",
            """        time("min_lead_ns", "min", "the same of one kernel, the shortest", is_later=True),
""",
        )
    ],
    "tracker/timeline/queue.py": [
        (
            """        "queued": groups.sums(is_queued),
""",
            """        "min_lead_ns": groups.smallest(lead_ns),
""",
        )
    ],
    f"migrations/versions/{NEXT}_shortest_lead.sql": [("", "ALTER TABLE queue ADD COLUMN min_lead_ns BIGINT;\n")],
}

SHOWN_COLUMN: Edits = {
    LEVELS: [
        (
            """        time("self_ns", "sum", "sum of the durations, without nested calls"),
        SHORTEST, LONGEST,
""",
            """        number("long_calls", "sum", "calls of 10 us or longer", is_later=True),
""",
        )
    ],
    "tracker/timeline/api.py": [
        (
            """        "max_ns": groups.largest(duration),
""",
            """        "long_calls": groups.sums((duration >= 10_000).astype(np.int64)),
""",
        ),
        (
            """        "max_ns": groups.largest(totals.max_ns),
""",
            """        "long_calls": np.full(len(groups.first), MISSING, dtype=np.int64),
""",
        ),
    ],
    f"migrations/versions/{NEXT}_long_calls.sql": [("", "ALTER TABLE api ADD COLUMN long_calls BIGINT;\n")],
    "tracker/results/columns.py": [
        (
            """API_KEY, (CALLS, TIME, Measure("self_ns", "Self Time"),""",
            """ Measure("long_calls", "Long Calls", word="long"),""",
        )
    ],
    "tracker/reports/views/show_tables.py": [
        (
            """"Host API calls", "api", col("API call", "name", **NAME), col("level"),""",
            """ col("long", "long_calls"),""",
        )
    ],
}

LEVEL: Edits = {
    LEVELS: [
        (
            """        SHORTEST, LONGEST,
    ), is_numbered=True, largest="total_ns"),
""",
            """    Level("stream_work", "The kernels of one stream of the device.", (
        STEP,
        key("stream", "stream of the device, as the profiler numbers it", least=None),
        CALLS, TOTAL,
    ), key=("step", "stream"), largest="total_ns"),
""",
        )
    ],
    "tracker/timeline/stream_work.py": [
        (
            "",
            '''"""The kernels of each stream of the device."""

from __future__ import annotations

import numpy as np

from tracker.profile import Table
from tracker.table import group_rows
from tracker.timeline.joined import Joined


def stream_work_table(joined: Joined) -> Table:
    """Return per step and stream how many kernels ran, and how long, all together."""
    device, rows = joined.events.device, np.flatnonzero(joined.is_kernel)
    groups = group_rows(joined.step[rows], device.stream[rows])
    first = rows[groups.first]
    return {
        "step": joined.step[first],
        "stream": device.stream[first],
        "calls": groups.counts,
        "total_ns": groups.sums(device.end_ns[rows] - device.start_ns[rows]),
    }
''',
        )
    ],
    "tracker/timeline/__init__.py": [
        (
            "from tracker.timeline.queue import queue_table\n",
            "from tracker.timeline.stream_work import stream_work_table\n",
        ),
        ('"queue": queue_table(joined)', ', "stream_work": stream_work_table(joined)'),
    ],
    f"migrations/versions/{NEXT}_stream_work.sql": [
        (
            "",
            """CREATE TABLE stream_work (
    run_id BIGINT NOT NULL, rank BIGINT NOT NULL, step BIGINT NOT NULL, stream BIGINT NOT NULL, calls BIGINT,
    total_ns BIGINT,
    CONSTRAINT pk_stream_work PRIMARY KEY (run_id, rank, step, stream)
) PARTITION BY RANGE (run_id);
""",
        )
    ],
    "tracker/results/columns.py": [
        (
            """    "idle": DiffTable(IDLE_KEY, (Measure("ns", "Idle Time"), Measure("gaps", "Gaps"))),
""",
            """    "stream_work": DiffTable(("stream",), (CALLS, TIME), level="stream_work"),
""",
        )
    ],
    "tracker/results/diff.py": [
        ("memory_blocks, modules, api, counters, idle,", " stream_work,"),
        (") = frames(", "1 + "),
    ],
    "tracker/results/shown.py": [("idle_causes, queues,", " stream_work,"), (") = frames(", "1 + ")],
    "tracker/results/sections.py": [
        (
            """            "ingest --again); a diff needs it of both sides",
        ),
""",
            """        Section(
            "stream",
            ("stream_work",),
            "Streams by change of total time",
            "no kernels ran, or a run was ingested by an older tracker",
        ),
""",
        )
    ],
}

COMMAND: Edits = {
    "tracker/cli/commands.py": [
        (
            """        "board": "Show every workload on one screen: what is new, what is open.",
""",
            """        "tally": "Count the runs of each device.",
""",
        )
    ],
    "tracker/cli/tally.py": [
        (
            "",
            '''"""`tracker tally`: how many runs each device has."""

from __future__ import annotations

from tracker.api.arguments import opened
from tracker.cli.options import Database, Top
from tracker.cli.output import plan
from tracker.cli.report_options import Page


def tally(top: Top = None, *, page: Page, db: Database = None) -> None:
    """Count the runs of each device."""
    from tracker.api import tally as tally_of

    delivery = plan(page, "tally", "tally")
    with opened(db, read_only=True) as store:
        delivery.deliver(tally_of(store=store), limit=top)
''',
        )
    ],
    "tracker/api/results.py": [
        ('"runs", "show", "status",', ' "tally",'),
        (
            """        return board_of(opened, options=options, owners=owners)
""",
            '''

def tally(*, store: Store | None = None) -> Tally:
    """Return how many runs each device has, as `tracker tally` does."""
    from tracker.columns import Columns
    from tracker.results.tally import Tally
    from tracker.store import queries

    with reading(store) as opened:
        devices = queries.runs(opened).listed("device")
    rows = [{"device": device, "runs": devices.count(device)} for device in sorted(set(devices))]
    return Tally({"devices": Columns.of_rows(rows, ["device", "runs"])})
''',
        ),
    ],
    "tracker/results/tally.py": [
        (
            "",
            '''"""How many runs each device has: the content of `tracker tally`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from tracker.results.screens import Frame, Result

if TYPE_CHECKING:
    from tracker.columns import Columns


class Tally(Result, frozen=True, eq=False):
    """The active runs of each device.

    - devices: device, runs
    """

    word: ClassVar[str] = "tally"

    tables: Mapping[str, Columns]

    devices = Frame()

    @property
    def headline(self) -> str:
        """How many runs there are."""
        return f"{sum(self.tables['devices'].listed('runs'))} runs"
''',
        )
    ],
}

# Two kernels: launched at 1 to 3 us and begun at 10, launched at 20 to 32 us and begun at 35.
TRACE: dict[str, Any] = {
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
    "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 40},
        *(
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": launched,
             "dur": took, "args": {"correlation": number}}
            for number, launched, took in ((1, 1, 2), (2, 20, 12))
        ),
        *(
            {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": begun, "dur": 2,
             "args": {"correlation": number, "stream": 7, "device": 0}}
            for number, begun in ((1, 10), (2, 35))
        ),
    ],
}  # fmt: skip

STORE_IN_THE_COPY = """
from tracker.store import schema
from tracker.store.tables.meanings import meaning

def leads(store):
    with store.connect() as connection:
        rows = connection.execute(text("SELECT run_id, min_lead_ns FROM queue ORDER BY run_id")).all()
        return [tuple(row) for row in rows], schema.drift(connection)

found["meaning"], found["head"] = meaning("queue", "min_lead_ns"), schema.SCHEMA_HEAD
with tracker.open_store(f"sqlite:///{scratch / 'older.db'}") as store:  # made before the edits
    tracker.ingest([scratch / "other.pt.trace.json"], version="v2", workload="w", store=store)
    found["older"], found["drift"] = leads(store)
with tracker.open_store("sqlite://") as store:
    tracker.ingest([scratch / "older.trk"], version="v1", workload="w", store=store)
    found["pack"] = leads(store)[0]
with tracker.open_store(f"sqlite:///{scratch / 'older.db'}") as store, store.begin() as connection:
    command.downgrade(schema.alembic_config(connection), "-1")
    found["columns"] = [row[1] for row in connection.execute(text("PRAGMA table_info(queue)"))]
"""

SHOW_IN_THE_COPY = """
from openpyxl import load_workbook
from tracker import reports

with tracker.open_store(f"sqlite:///{scratch / 'older.db'}") as store:
    tracker.ingest([scratch / "other.pt.trace.json"], version="v2", workload="w", store=store)
    tracker.ingest([scratch / "third.pt.trace.json"], version="v3", workload="w", store=store)
    shown = tracker.show("v3", store=store)
    compared = tracker.diff("v2", "v3", store=store)
    with_older = tracker.diff("v1", "v3", store=store)
found["show"] = json.loads(reports.render(shown, "json"))["api"][0]["long_calls"]
found["show_text"] = reports.render(shown, "text", only=("api",))
row = json.loads(reports.render(compared, "json"))["api"][0]
found["diff"] = [row["baseline_long_calls"], row["candidate_long_calls"]]
row = json.loads(reports.render(with_older, "json"))["api"][0]
found["diff_with_older"] = [row["baseline_long_calls"], row["candidate_long_calls"]]
found["diff_text"] = reports.render(compared, "text", only=("api",))
(scratch / "diff.xlsx").write_bytes(reports.render(compared, "xlsx"))
sheet = load_workbook(scratch / "diff.xlsx")["ApiCompare"]
found["workbook"] = [cell.value for row in sheet.iter_rows() for cell in row]
"""

LEVEL_IN_THE_COPY = """
from openpyxl import load_workbook
from tracker import reports

with tracker.open_store(f"sqlite:///{scratch / 'older.db'}") as store:
    tracker.ingest([scratch / "other.pt.trace.json"], version="v2", workload="w", store=store)
    tracker.ingest([scratch / "third.pt.trace.json"], version="v3", workload="w", store=store)
    shown = tracker.show("v3", store=store)
    compared = tracker.diff("v2", "v3", store=store)
    with_older = tracker.diff("v1", "v3", store=store)
found["show"] = json.loads(reports.render(shown, "json"))["stream_work"]
found["show_text"] = reports.render(shown, "text", only=("stream",))
found["diff"] = json.loads(reports.render(compared, "json"))["stream_work"]
found["diff_with_older"] = json.loads(reports.render(with_older, "json"))["stream_work"]
found["diff_text"] = reports.render(compared, "text", only=("stream",))
(scratch / "diff.xlsx").write_bytes(reports.render(compared, "xlsx"))
sheet = load_workbook(scratch / "diff.xlsx")["StreamCompare"]
found["workbook"] = [cell.value for row in sheet.iter_rows() for cell in row]
"""

TALLY_IN_THE_COPY = """
import subprocess

words = [sys.executable, "-m", "tracker", "tally", "--db", str(scratch / "older.db"), "--format"]
for format in ("text", "json", "csv", "markdown", "html"):
    done = subprocess.run([*words, format], capture_output=True, text=True, check=True, cwd=sys.argv[1])
    found[format] = done.stdout
with tracker.open_store(f"sqlite:///{scratch / 'older.db'}") as store:
    found["python"] = tracker.tally(store=store).devices.to_dict("records")
"""

IN_THE_COPY = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
scratch, revision, name = Path(sys.argv[2]), *sys.argv[3:]
from alembic import command
from alembic.config import Config
from sqlalchemy import text
import tracker
from tracker.store.schema import migrations_folder

if name:
    # what a person types: alembic revision --rev-id NEXT -m NAME
    config = Config(stdout=sys.stderr)
    config.set_main_option("script_location", str(migrations_folder()))
    command.revision(config, name, rev_id=revision)
found = {"from": tracker.__path__[0]}
CODE
print(json.dumps(found))
"""


def count(edits: Edits) -> tuple[int, int]:
    """Return how many files and places are written by hand. These numbers only get smaller."""
    return len(edits), sum(len(places) for places in edits.values())


def edit(copy: Path, edits: Edits) -> None:
    for name, places in edits.items():
        path = copy / name
        for anchor, added in places:
            if not anchor:
                path.write_text(added, encoding="utf-8")
                continue
            source = path.read_text(encoding="utf-8")
            assert source.count(anchor) == 1, f"{name}: the place of the edit is gone, or there are several"
            path.write_text(source.replace(anchor, anchor + added), encoding="utf-8")


def run_in_copy(tmp_path: Path, edits: Edits, code: str, migration: str = "") -> dict[str, Any]:
    """Make the edits in a copy, and a migration where it has a name; return what `code` finds with a run of before."""
    import tracker

    for number, name in enumerate(("one", "other", "third")):
        trace = {**TRACE, "number": number}
        (tmp_path / f"{name}.pt.trace.json").write_text(json.dumps(trace))
    with tracker.open_store(f"sqlite:///{tmp_path / 'older.db'}") as store:
        tracker.ingest([tmp_path / "one.pt.trace.json"], version="v1", workload="w", store=store)
    tracker.pack([tmp_path / "one.pt.trace.json"], tmp_path / "older.trk")

    copy = tmp_path / "copy"
    for name in ("tracker", "migrations"):
        shutil.copytree(ROOT / name, copy / name)
    edit(copy, edits)
    words = [sys.executable, "-c", IN_THE_COPY.replace("CODE", code), str(copy), str(tmp_path), NEXT, migration]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["from"] == str(copy / "tracker")
    return found


@pytest.mark.slow  # as a shown column
def test_stored_column_costs_three_files(tmp_path):
    assert count(STORED_COLUMN) == (3, 3)
    found = run_in_copy(tmp_path, STORED_COLUMN, STORE_IN_THE_COPY, "shortest lead")
    assert (found["head"], found["meaning"]) == (NEXT, "the same of one kernel, the shortest")
    # the run of before has no such number, the new one has that of its second kernel
    assert found["older"] == [[1, None], [2, 3000]]
    assert found["pack"] == [[1, None]]
    assert found["drift"] == ""
    assert "min_lead_ns" not in found["columns"]


@pytest.mark.slow  # by day a level with a section, which is most of it
def test_shown_column_costs_five_files(tmp_path):
    assert count(SHOWN_COLUMN) == (5, 6)
    found = run_in_copy(tmp_path, SHOWN_COLUMN, SHOW_IN_THE_COPY, "long calls")
    # the second of the two launches takes 12 us
    assert found["show"] == 1
    assert found["diff"] == [1.0, 1.0]
    assert found["diff_with_older"] == [None, 1.0]
    assert "long" in found["show_text"]
    assert "long" in found["diff_text"]
    assert "Baseline Long Calls" in found["workbook"]


def test_command_with_a_result_costs_four_files(tmp_path):
    assert count(COMMAND) == (4, 5)
    found = run_in_copy(tmp_path, COMMAND, TALLY_IN_THE_COPY)
    assert found["python"] == [{"device": "H100", "runs": 1}]
    assert "1 runs" in found["text"]
    document = json.loads(found["json"])
    assert (document["headline"], document["devices"]) == ("1 runs", found["python"])
    assert found["csv"].splitlines()[-1] == "H100,1"


def test_level_with_a_section_costs_eight_files(tmp_path):
    assert count(LEVEL) == (8, 11)
    found = run_in_copy(tmp_path, LEVEL, LEVEL_IN_THE_COPY, "stream work")
    # two kernels of 2 us each, on stream 7
    (row,) = found["show"]
    assert (row["stream"], row["calls"], row["total_ns"]) == (7, 2, 4000)
    (row,) = found["diff"]
    assert (row["stream"], row["baseline_ns"], row["candidate_ns"], row["diff"]) == (7, 4000, 4000, 0)
    # the run of before has no rows of the level
    (row,) = found["diff_with_older"]
    assert (row["status"], row["baseline_ns"], row["candidate_ns"]) == ("ADDED", None, 4000)
    assert "Streams" in found["show_text"]
    assert "Streams by change" in found["diff_text"]
    assert "Stream" in found["workbook"]
