"""Exports of Nsight Systems made of given tables, read."""

from __future__ import annotations

from tests.readers.helpers import frame
from tests.readers.nsys_databases import write
from tracker.readers import ReadOptions, nsys_sqlite
from tracker.timeline import rows_of


def read(tmp_path, tables, name="a.sqlite", **options):
    return nsys_sqlite.read(write(tmp_path / name, tables), ReadOptions(**options))


def kernels(capture):
    """Kernel name -> (launching op, its module, its phase, calls, total ns)."""
    rows = rows_of(capture.events).tables
    keys, ops = frame(rows["kernel_key"]), frame(rows["op_key"])
    found = {}
    for row in frame(rows["kernel"]):
        op = ops[row["op_key"]]
        found[keys[row["kernel_key"]]["name"]] = (
            op["name"], op["module"], op["phase"], int(row["calls"]), int(row["total_ns"]),
        )  # fmt: skip
    return found
