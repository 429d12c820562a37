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
MOST_FILES_OF_A_STORED_COLUMN = 3

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
            '''        *API_KEY, "status", *_sides("calls", "ns", "self_ns", "average_ns"''',
            ''', "long_calls"''',
        )
    ],
    "tracker/compare/others.py": [('''sides, tables, API_KEY, ["calls", "ns", "self_ns"''', ''', "long_calls"''')],
    "tracker/reports/views/diff_tables.py": [
        (
            """"api", col("API call", "name", **NAME), col("level", drop=2),
""",
            """        Column("long", lambda row: cells.calls(row["baseline_long_calls"], row["candidate_long_calls"])),
""",
        )
    ],
    "tracker/reports/views/show.py": [
        (
            """"Host API calls", "api", col("API call", "name", **NAME), col("level"),""",
            """ col("long", "long_calls"),""",
        )
    ],
    "tracker/reports/diff_workbook.py": [
        (
            """*_sides(("Calls", "calls"), ("Total Duration", "ns"), ("Self Time", "self_ns"),""",
            """ ("Long Calls", "long_calls"),""",
        )
    ],
}
MOST_FILES_OF_A_SHOWN_COLUMN = 8
MOST_PLACES_OF_A_SHOWN_COLUMN = 9

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

# what a person types: alembic revision --rev-id NEXT -m NAME
config = Config(stdout=sys.stderr)
config.set_main_option("script_location", str(migrations_folder()))
command.revision(config, name, rev_id=revision)
found = {"from": tracker.__path__[0]}
CODE
print(json.dumps(found))
"""


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


def run_in_copy(tmp_path: Path, edits: Edits, code: str, migration: str) -> dict[str, Any]:
    """Make the edits in a copy, and a migration of this name; return what `code` finds with a run of before."""
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


def test_stored_column_costs_three_files(tmp_path):
    assert len(STORED_COLUMN) <= MOST_FILES_OF_A_STORED_COLUMN
    found = run_in_copy(tmp_path, STORED_COLUMN, STORE_IN_THE_COPY, "shortest lead")
    assert (found["head"], found["meaning"]) == (NEXT, "the same of one kernel, the shortest")
    # the run of before has no such number, the new one has that of its second kernel
    assert found["older"] == [[1, None], [2, 3000]]
    assert found["pack"] == [[1, None]]
    assert found["drift"] == ""
    assert "min_lead_ns" not in found["columns"]


def test_shown_column_costs_eight_files(tmp_path):
    assert len(SHOWN_COLUMN) <= MOST_FILES_OF_A_SHOWN_COLUMN
    assert sum(map(len, SHOWN_COLUMN.values())) <= MOST_PLACES_OF_A_SHOWN_COLUMN
    found = run_in_copy(tmp_path, SHOWN_COLUMN, SHOW_IN_THE_COPY, "long calls")
    # the second of the two launches takes 12 us
    assert found["show"] == 1
    assert found["diff"] == [1.0, 1.0]
    assert found["diff_with_older"] == [None, 1.0]
    assert "long" in found["show_text"]
    assert "long" in found["diff_text"]
    assert "Baseline Long Calls" in found["workbook"]
