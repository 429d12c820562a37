"""How much a database takes of the traces that it came from."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from tests.readers.reference_reader import content
from tests.real import data
from tracker.intake import ingest
from tracker.store import open_store

OWLV2 = "google_owlv2-large-patch14-ensemble.pt.trace.json.gz"
TRACES = [
    f"pytorch/h100_vs_mi300/h100/{OWLV2}",
    f"pytorch/h100_vs_mi300/mi300/{OWLV2}",
    "pytorch/format_drift/early_2021/worker0.pt.trace.json.gz",
    "pytorch/v100_resnet50_2021/resnet50_num_workers_4/worker0.1623212756351.pt.trace.json.gz",
    "pytorch/v100_resnet50_2021/resnet50_num_workers_4/worker0.1623213129365.pt.trace.json.gz",
]
SMALLER = 39
"""Was 50 before the rows of memory owners and large blocks (38 kB of 660), 44 before occupancy and blocks per SM,
43 before the text of the public views, 41 before kinds of steps and keys of operators (one page of 4 kB), 40 before
sequences of kernels (another one).
"""


@pytest.mark.parametrize("name", TRACES)
def test_the_database_of_a_large_trace_takes_is_small_beside_its_json(tmp_path, name):
    trace, database = data.path(name), tmp_path / "tracker.db"
    with open_store(str(database)) as store:
        ingest(store, [trace], version="v1", workload="w")
        checkpointed(store)
    assert database.stat().st_size * SMALLER <= len(content(trace))


def test_an_empty_database_takes_little(tmp_path):
    with open_store(str(tmp_path / "tracker.db")) as store:
        checkpointed(store)
    assert (tmp_path / "tracker.db").stat().st_size < 164_000


def checkpointed(store) -> None:
    with store.engine.connect() as connection:
        connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
