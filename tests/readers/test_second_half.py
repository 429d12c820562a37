"""A trace read by two processes is the trace read by one."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import sys
from collections.abc import Iterator
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tracker import readers
from tracker.errors import SourceError
from tracker.readers import ReadOptions
from tracker.readers._source import SourceText
from tracker.readers.torch_profiler import second_half, second_reader
from tracker.readers.torch_profiler.reading import captures_of

ALONE = ReadOptions(one_process=True)


def trace(ops: int = 300, **more: Any) -> dict[str, Any]:
    """Ops that launch kernels, with frames, memory, arrows of text ids, collectives, names that look like JSON."""
    events: list[dict[str, Any]] = []
    for i in range(ops):
        lane = {"pid": 1, "tid": 1 + i % 3 // 2}
        event = {"ph": "X", **lane, "ts": 10 * i, "dur": 8}
        shapes = {"Input Dims": [[i % 5, 2], []], "Input type": ["float", ""]}
        name = 'a}, {"ph": "X"' if i % 7 == 0 else f"aten::op{i % 11}"
        events += [
            {"cat": "python_function", "name": f"nn.Module: Linear_{i % 4}", **event},
            {"cat": "cpu_op", "name": name, "args": {**shapes, "list": [{"ph": "no"}, {"ph": "event"}]}, **event},
            {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "args": {"correlation": i}, **event, "dur": 1},
            {"cat": "kernel", "name": f"k{i % 13}", "args": {"correlation": i, "stream": 7, "device": 0}, **event,
             "pid": 0, "tid": 7},
            {"ph": "i", "name": "[memory]", **lane, "ts": 10 * i, "args": {"Bytes": 64, "Addr": i, "Device Type": 1}},
            {"ph": "s", "cat": "ac2g", "id": f"flow {i % 9}", **lane, "ts": 10 * i},
        ]  # fmt: skip
    reduce = {"Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float", "Process Group Name": "0"}
    events.append({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 99999, "dur": 5,
                   "args": reduce})  # fmt: skip
    events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "autograd"}})
    head = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]}
    return {**head, "traceEvents": events, "distributedInfo": {"rank": 3}, **more}


def told(captures: Any) -> list[dict[str, Any]]:
    """Captures with texts instead of codes, so that no numbering matters."""
    return [{**dict(tables(c.events)), "rank": c.rank, "digest": c.sources[0].digest} for c in captures]


def tables(events: Any) -> Iterator[tuple[str, Any]]:
    texts = events.strings.texts
    for table in ("ops", "frames", "launches", "device", "allocations", "markers"):
        rows = getattr(events, table)
        for field in fields(rows):
            column = getattr(rows, field.name)
            if field.name in ("name", "input_shapes", "input_types", "module", "call_stack", "component"):
                column = [texts[code] for code in column.tolist()]
            elif field.name == "thread":
                column = [events.threads[thread] for thread in column.tolist()]
            yield f"{table}.{field.name}", column.tolist() if isinstance(column, np.ndarray) else column


def read(path, options=ALONE):
    return captures_of(SourceText(path, options, block_bytes=900), options, chunk_bytes=2000)


@pytest.fixture
def at_any_size(monkeypatch):
    """Two processes for small traces, too; a function that says near which byte the second one begins."""
    halves = []
    lie = None

    class Seen(second_half.SecondHalf):
        def add_to(self, collector):
            halves.append(super().add_to(collector))
            return halves[-1]

        def begins_at(self):
            if self._place is None and self._process is not None:  # a small trace is read before the other has begun
                second_half._can_read(self._process.stdout, 30_000)
            place = super().begins_at()
            return place if place is None or lie is None else lie

    monkeypatch.setattr(second_half, "SecondHalf", Seen)
    monkeypatch.setattr(second_half, "MIN_BYTES", 1)
    monkeypatch.setattr(second_half, "processors", lambda: 2)

    def begin(path, near: int) -> None:
        monkeypatch.setattr(second_half, "START_BYTES", 2 * near - second_half._content_bytes(path))

    def pretend(place: int) -> None:
        nonlocal lie
        lie = place

    return SimpleNamespace(halves=halves, near=begin, pretend=pretend)


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_two_processes_read_what_one_reads(tmp_path, at_any_size, suffix, share):
    text = json.dumps(trace(), indent=1).encode()
    path = tmp_path / f"a{suffix}"
    path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    at_any_size.near(path, int(len(text) * share))
    captures, warnings = read(path, ReadOptions())
    assert at_any_size.halves == [True]
    assert (told(captures), warnings) == (told(read(path)[0]), ())


@pytest.mark.parametrize("inside", ['{"ph": "no"}, {', '"a}, {', '"aten', '{"cat": "kernel"', '"ts": 5'])
def test_a_place_in_the_middle_of_an_event_is_not_believed(tmp_path, at_any_size, inside):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(trace()))
    text = path.read_text()
    at_any_size.near(path, 50_000)
    at_any_size.pretend(text.index(inside, 40_000) + len(inside) - 1)
    captures, _ = read(path, ReadOptions())
    assert at_any_size.halves == []
    assert told(captures) == told(read(path)[0])


def test_what_is_wrong_in_the_second_half_is_told_as_ever(tmp_path, at_any_size):
    events = trace()["traceEvents"]
    next(event for event in reversed(events) if event.get("cat") == "kernel")["dur"] = -1
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"traceEvents": events}))
    at_any_size.near(path, path.stat().st_size // 2)
    with pytest.raises(SourceError) as alone:
        read(path)
    with pytest.raises(SourceError) as both:
        read(path, ReadOptions())
    assert at_any_size.halves == [False]
    assert str(both.value) == str(alone.value)
    left_out = ReadOptions(skip_bad_rows=True)
    assert read(path, left_out)[1] == ("1 events with impossible times were left out",)


def test_a_trace_that_ends_early_is_told_as_ever(tmp_path, at_any_size):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(trace())[:-5000])
    at_any_size.near(path, 60_000)
    with pytest.raises(SourceError, match="the trace ends in the middle of its events"):
        read(path, ReadOptions())
    (warning,) = read(path, ReadOptions(allow_partial=True))[1]
    assert warning.startswith("partial: the trace ends in the middle of its events")


def test_without_a_second_process_one_reads_all(tmp_path, at_any_size, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(trace()))
    at_any_size.near(path, 60_000)
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert told(read(path, ReadOptions())[0]) == told(read(path)[0])
    assert at_any_size.halves == []


def test_a_small_trace_or_one_processor_is_read_by_one_process(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text("x" * 100)
    with second_half.beside(path, ReadOptions()) as half:
        assert half is None
    monkeypatch.setattr(second_half, "MIN_BYTES", 1)
    monkeypatch.setattr(second_half, "processors", lambda: 1)
    with second_half.beside(path, ReadOptions()) as half:
        assert half is None
    monkeypatch.setattr(second_half, "processors", lambda: 2)
    with second_half.beside(path, ReadOptions()) as half:
        assert half is not None


def test_the_other_process_writes_where_it_begins_and_then_its_rows(tmp_path, monkeypatch):
    """The same steps in this process, where they can be looked at."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(trace()))
    job = pickle.dumps((path, ALONE, 50_000))
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(job)))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=out))
    second_reader.main()
    out.seek(0)
    place = int.from_bytes(out.read(16), "big")
    assert path.read_bytes()[place : place + 7] in (b'{"cat":', b'{"ph": ')
    state = pickle.load(out)
    assert 0 < state["rows"]["ops"] < 300
    assert json.loads(state["top_text"])["distributedInfo"] == {"rank": 3}


def test_a_half_begun_ahead_is_the_one_that_is_read(tmp_path, at_any_size):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(trace()))
    with readers.ahead([path], ReadOptions()):
        begun = second_half._AHEAD[path]
        process = begun._process
        captures, _ = read(path, ReadOptions(progress=lambda *_: None))
        assert at_any_size.halves == [True]
        assert process.returncode is not None
    assert told(captures) == told(read(path)[0])


def test_a_half_begun_under_other_options_or_not_read_at_all_is_given_up(tmp_path, at_any_size):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(trace()))
    with readers.ahead([path], ReadOptions(skip_bad_rows=True)):
        begun = second_half._AHEAD[path]
        read(path, ReadOptions())
    assert begun._process is None
    with readers.ahead([path], ReadOptions()):
        begun = second_half._AHEAD[path]
    assert begun._process is None
    assert second_half._AHEAD == {}


def test_nothing_is_begun_ahead_for_other_formats_folders_or_many_files(tmp_path, at_any_size):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(trace()))
    other = tmp_path / "log.txt"
    other.write_text("nothing known")
    for paths, format in (([path], "cann"), ([other], None), ([tmp_path], None), ([path, path], None)):
        with readers.ahead(paths, ReadOptions(), format):
            assert second_half._AHEAD == {}
