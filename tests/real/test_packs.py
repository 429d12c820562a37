"""Every shared capture, packed: an ingest of the pack leaves the database that an ingest of the profile leaves."""

from __future__ import annotations

from functools import cache

import pytest

from tests.conftest import RUN
from tests.packs import everything
from tests.real import data
from tracker import readers
from tracker.intake import IngestOptions, Sidecar, ingest, pack
from tracker.store import open_store


@cache
def captures(format: str) -> list[str]:
    """Captures of a format, without those that two readers claim."""
    found = [seen for seen in readers.survey(data.path("")) if len(seen.claims) == 1 and not seen.problem]
    own = data.some({seen.path for seen in found if seen.claims[0] == format})
    return own if RUN == "all" else own[:1]


OPTIONS = IngestOptions(configuration={"batch": "8"}, tags={"image": "x"}, note="n")
SAID = Sidecar(version="v1", workload="toy", note="n", configuration={"batch": "8"}, tags={"image": "x"})


@pytest.mark.slow  # by day tests/test_packing.py packs a small profile of each format
@pytest.mark.parametrize("quarter", range(4))  # of 143 training logs, one process would be busy for minutes
@pytest.mark.parametrize("format", [name for name in readers.NAMES if name != "pack"])
def test_the_pack_of_a_capture_is_that_capture(format, quarter, tmp_path):
    assert captures(format)
    for name in captures(format)[quarter::4]:
        check_pack(data.path(name), tmp_path / "run.trk")


def check_pack(path, run):
    made = pack([path], asked=SAID)
    run.write_bytes(made.content)
    assert len(made.content) < max(made.read_bytes, 4096)
    with open_store("sqlite://") as plain, open_store("sqlite://") as taken:
        (there,) = ingest(taken, [run])
        (here,) = ingest(plain, [path], version="v1", workload="toy", options=OPTIONS)
        assert everything(taken) == everything(plain)
        assert (there.warnings, there.formats, there.paths) == (here.warnings, here.formats, here.paths)
        (again,) = ingest(taken, [path], version="v1", workload="toy")
        assert (again.run_id, again.already) == (there.run_id, True)


FEW = [
    "pytorch/two_ranks_nccl", "torch_cpu/ddp_gloo_2ranks/baseline_run1", "ascend/transformer_4ranks_pp2_dp2",
    "nsys/wan_2gpu_before_after/mfu_2gpu_before.sqlite", "paddle/cpu_captures/baseline_run1",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_packs_of_whole_folders_on_both_databases(name, store, tmp_path):
    path, run = data.path(name), tmp_path / "run.trk"
    run.write_bytes(pack([path], asked=SAID).content)
    there = ingest(store, [run])
    with open_store("sqlite://") as plain:
        here = ingest(plain, [path], version="v1", workload="toy", options=OPTIONS)
        with plain.connect() as one, store.connect() as other:
            assert [result.ranks for result in there] == [result.ranks for result in here]
            for table in ("op", "kernel", "communication", "step", "sample"):
                count = f"SELECT COUNT(*) FROM {table}"
                assert other.exec_driver_sql(count).scalar_one() == one.exec_driver_sql(count).scalar_one(), table
    again = ingest(store, [path], version="v1", workload="toy")
    assert all(result.already for result in again)
