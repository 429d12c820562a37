"""Single calls of every shared capture: they add up to the rows of the run, to the ns."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from tests.real import data
from tracker import readers, timeline
from tracker.compare import list_calls as calls_of_run
from tracker.compare import show
from tracker.errors import SourceError
from tracker.intake import ingest
from tracker.profile import MISSING, NO_STEP, Capture, Rows, label_idle
from tracker.readers import Found, ReadOptions
from tracker.results import CallsOptions, ShowOptions
from tracker.store import open_store
from tracker.timeline import WantedCalls
from tracker.timeline.calls import list_calls
from tracker.timeline.checks import check_times

_STAND_INS = ("(unlinked)", "(no op)", "(not listed)")
_OP_TIMES = ("host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns")
_MOST_NAMES = 60
"""Names of a kind that are looked at in a capture, those of most time."""


def _captures() -> list[Found]:
    """Every capture of the shared data whose reader gives events."""
    found = []
    for kind in ("pytorch", "torch_cpu", "ascend", "cann", "nsys", "paddle"):
        folder = data.folder() / kind
        for seen in readers.survey(folder) if folder.exists() else ():
            if seen.claims and seen.claims[0] not in ("nsys_stats", "paddle_summary", "training_log"):
                found.append(Found(seen.path, seen.claims[0]))
    return found


def _name(found: Found) -> str:
    return str(found.path.relative_to(data.folder()))


def _read(found: Found) -> tuple[Capture, ...]:
    try:
        return readers.read(found, ReadOptions(allow_partial=True, skip_bad_rows=True)).captures
    except SourceError as error:
        pytest.skip(str(error))


def _sums(rows: Rows, table: str, names: list[str], columns: tuple[str, ...]) -> dict[str, list[int]]:
    """Return the sums of the columns by name, of what lies in steps, those of most of the first time first."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0] * len(columns))
    values = [np.asarray(rows.tables[table][column]).tolist() for column in columns]
    for name, step, *numbers in zip(names, np.asarray(rows.tables[table]["step"]).tolist(), *values, strict=True):
        if step == NO_STEP or name in _STAND_INS:
            continue
        for place, number in enumerate(numbers):
            sums[name][place] += 0 if number == MISSING else number
    largest = sorted(sums, key=lambda name: (-max(sums[name][1:]), name))
    return {name: sums[name] for name in largest[:_MOST_NAMES]}


def _sums_of_kinds(rows: Rows) -> dict[str, dict[str, list[int]]]:
    tables = rows.tables
    op_keys = [tables["op_key"]["name"][key] for key in np.asarray(tables["op"]["op_key"]).tolist()]
    kernel_keys = np.asarray(tables["kernel"]["kernel_key"]).tolist()
    kernels = [tables["kernel_key"]["canonical_name"][key] for key in kernel_keys]
    places = map(label_idle, tables["idle"]["cause"], tables["idle"]["place"])
    idle = _sums(rows, "idle", list(places), ("gaps", "ns"))
    return {
        "operator": _sums(rows, "op", op_keys, ("calls", *_OP_TIMES)),
        "kernel": _sums(rows, "kernel", kernels, ("calls", "total_ns")),
        "collective": _sums(rows, "communication", list(tables["communication"]["kind"]), ("calls", "total_ns")),
        # of idle time that the profiler only states no gap is known
        "idle": {name: sums for name, sums in idle.items() if sums[0]},
    }


@pytest.mark.slow
@pytest.mark.parametrize("found", _captures(), ids=_name)
def test_calls_add_up_to_the_rows(found: Found):
    for capture in _read(found):
        if capture.events is None:
            continue
        rows = timeline.build(capture).rows
        assert rows is not None
        joined, _ = timeline.join_checked(check_times(capture.events), ())
        for kind, sums in _sums_of_kinds(rows).items():
            for name, expected in sums.items():
                calls = list_calls(joined, WantedCalls(kind=kind, name=name), 0)
                times = _OP_TIMES if kind == "operator" else ("duration_ns",)
                count = int(calls["counts"].sum()) if kind == "operator" else len(calls)
                assert [count, *(int(calls.integers(time).sum()) for time in times)] == expected, (kind, name)


_RUNS = (
    "pytorch/two_ranks_nccl",
    "ascend/run_2025-01/text/level1",
    "ascend/run_2025-01/db/level1",
    "torch_cpu/with_stack",
    "nsys/wan_2gpu_before_after/mfu_2gpu_after.sqlite",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", _RUNS)
def test_list_of_a_run_adds_up_to_what_show_says_of_each_rank(name: str):
    with open_store("sqlite://") as store:
        ingest(store, [data.path(name)], version="v1", workload="w")
        shown = show(store, "latest", options=ShowOptions(by=("rank",)))
        for kind, table, column in (
            ("operator", "ops", "name"), ("kernel", "kernels", "name"), ("collective", "communication", "kind"),
        ):  # fmt: skip
            rows = shown.tables[table]
            for one in [one for one in dict.fromkeys(rows.listed(column)) if one not in _STAND_INS][:2]:
                found = calls_of_run(store, "latest", options=CallsOptions(calls=one, calls_of=kind))
                assert not found.notes, (one, found.notes)
                total = found.measure if kind == "operator" else "total_ns"
                expected: dict[int, int] = defaultdict(int)
                for rank, name_of_row, total_ns in rows.rows("rank", column, total):
                    expected[rank] += (total_ns or 0) if name_of_row == one else 0
                listed: dict[int, int] = defaultdict(int, dict.fromkeys(expected, 0))
                for rank, ns in found.tables["calls"].rows("rank", found.measure):
                    listed[rank] += ns or 0
                assert listed == expected, one


def test_a_small_capture_adds_up_by_day():
    path = Path(timeline.__file__).parents[1] / "samples" / "v01" / "run1.pt.trace.json.gz"
    test_calls_add_up_to_the_rows(Found(path, "torch_profiler"))
