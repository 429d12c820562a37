"""What a change costs: a newcomer's edits are made in a copy, which then does what they were for.

The files that are written by hand are counted. An edit whose place is gone fails by the name of its file.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tracker.store.schema import SCHEMA_HEAD

ROOT = Path(__file__).parents[1]
NEXT = f"{int(SCHEMA_HEAD) + 1:04}"

STORED_COLUMN = {
    "tracker/schema/levels.py": (
        """"sum", "kernels that were launched before the event ahead of them on the stream ended: the "
               "device had work"),
""",
        """        time("min_lead_ns", "min", "the same of one kernel, the shortest", is_later=True),
""",
    ),
    "tracker/timeline/queue.py": (
        """        "queued": groups.sums(is_queued),
""",
        """        "min_lead_ns": groups.smallest(lead_ns),
""",
    ),
    f"migrations/versions/{NEXT}_shortest_lead.sql": ("", "ALTER TABLE queue ADD COLUMN min_lead_ns BIGINT;\n"),
}
"""File -> the text behind which something is added, and what; without such a text it is a new file."""
MOST_FILES_OF_A_STORED_COLUMN = 3

# Two kernels: launched at 1 to 3 us and begun at 10, launched at 20 to 22 us and begun at 25.
TRACE = {
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
    "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 40},
        *(
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": launched, "dur": 2,
             "args": {"correlation": number}}
            for number, launched in ((1, 1), (2, 20))
        ),
        *(
            {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": begun, "dur": 2,
             "args": {"correlation": number, "stream": 7, "device": 0}}
            for number, begun in ((1, 10), (2, 25))
        ),
    ],
}  # fmt: skip

IN_THE_COPY = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
scratch = Path(sys.argv[2])
from alembic import command
from alembic.config import Config
from sqlalchemy import text
import tracker
from tracker.store import schema
from tracker.store.tables.meanings import meaning

def leads(store):
    with store.connect() as connection:
        rows = connection.execute(text("SELECT run_id, min_lead_ns FROM queue ORDER BY run_id")).all()
        return [tuple(row) for row in rows], schema.drift(connection)

# what a person types: alembic revision --rev-id NEXT -m NAME
config = Config(stdout=sys.stderr)
config.set_main_option("script_location", str(schema.migrations_folder()))
command.revision(config, "shortest lead", rev_id=sys.argv[3])
found = {"from": tracker.__path__[0], "meaning": meaning("queue", "min_lead_ns"), "head": schema.SCHEMA_HEAD}
with tracker.open_store(f"sqlite:///{scratch / 'older.db'}") as store:  # made before the edits
    tracker.ingest([scratch / "other.pt.trace.json"], version="v2", workload="w", store=store)
    found["older"], found["drift"] = leads(store)
with tracker.open_store("sqlite://") as store:
    tracker.ingest([scratch / "older.trk"], version="v1", workload="w", store=store)
    found["pack"] = leads(store)[0]
with tracker.open_store(f"sqlite:///{scratch / 'older.db'}") as store, store.begin() as connection:
    command.downgrade(schema.alembic_config(connection), "-1")
    found["columns"] = [row[1] for row in connection.execute(text("PRAGMA table_info(queue)"))]
print(json.dumps(found))
"""


def edit(copy: Path, edits: dict[str, tuple[str, str]]) -> None:
    for name, (anchor, added) in edits.items():
        path = copy / name
        if not anchor:
            path.write_text(added, encoding="utf-8")
            continue
        source = path.read_text(encoding="utf-8")
        assert source.count(anchor) == 1, f"{name}: the place of the edit is gone, or there are several"
        path.write_text(source.replace(anchor, anchor + added), encoding="utf-8")


def test_stored_column_costs_three_files(tmp_path):
    import tracker

    assert len(STORED_COLUMN) <= MOST_FILES_OF_A_STORED_COLUMN
    (tmp_path / "one.pt.trace.json").write_text(json.dumps(TRACE))
    (tmp_path / "other.pt.trace.json").write_text(json.dumps({**TRACE, "displayTimeUnit": "ms"}))
    with tracker.open_store(f"sqlite:///{tmp_path / 'older.db'}") as store:
        tracker.ingest([tmp_path / "one.pt.trace.json"], version="v1", workload="w", store=store)
    tracker.pack([tmp_path / "one.pt.trace.json"], tmp_path / "older.trk")

    copy = tmp_path / "copy"
    for name in ("tracker", "migrations"):
        shutil.copytree(ROOT / name, copy / name)
    edit(copy, STORED_COLUMN)
    words = [sys.executable, "-c", IN_THE_COPY, str(copy), str(tmp_path), NEXT]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    found = json.loads(done.stdout.splitlines()[-1])
    assert found["from"] == str(copy / "tracker")
    assert (found["head"], found["meaning"]) == (NEXT, "the same of one kernel, the shortest")
    # the run of before has no such number, the new one has that of its second kernel
    assert found["older"] == [[1, None], [2, 3000]]
    assert found["pack"] == [[1, None]]
    assert found["drift"] == ""
    assert "min_lead_ns" not in found["columns"]
