"""A name that its writer did not escape costs one event at most, wherever it stands; all others are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.readers import traces
from tests.readers.helpers import decoding, texts
from tracker.errors import SourceError
from tracker.readers import ReadOptions
from tracker.readers._broken_text import mend_event
from tracker.readers._source import SourceText
from tracker.readers.torch_profiler.reading import captures_of

BROKEN = {
    "quote": (b'say "hi" to', None),
    "unclosed object": (b'{"a": 1(12): run', None),
    "Windows path": (rb"torch\cuda\x.py", r"torch\cuda\x.py"),
    "control character": (b"a\tb", "a b"),
    "no UTF-8": (b"a\xffb", "a?b"),
    "half a surrogate": (rb"a\ud83db", "a\ufffdb"),
}


def with_name(name: bytes, place: int, count: int = 6) -> bytes:
    """A trace of some ops, one of which is called `name`, with lists of objects among their args."""
    args = {"list": [{"k": 1}, {"k": 2}]}
    events = [traces.op("NAME" if i == place else f"op{i}", 10 * i, 5, **args) for i in range(count)]
    return json.dumps({"schemaVersion": 1, "traceEvents": events}).encode().replace(b"NAME", name)


def read(folder: Path, content: bytes, chunk_bytes: int) -> tuple[list[str], tuple[str, ...]]:
    path = folder / "a.pt.trace.json"
    path.write_bytes(content)
    source = SourceText(path, ReadOptions(), block_bytes=chunk_bytes)
    (capture,), warnings = captures_of(source, ReadOptions(), chunk_bytes=chunk_bytes)
    assert capture.events is not None
    return texts(capture.events, capture.events.ops.name), warnings


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("chunk_bytes", [1, 100, 1 << 20])
@pytest.mark.parametrize("place", [0, 3, 5])
@pytest.mark.parametrize("how", BROKEN)
def test_broken_name_costs_one_event_at_most(tmp_path, how, place, chunk_bytes, compiled):
    name, mended = BROKEN[how]
    with decoding(compiled=compiled):
        names, warnings = read(tmp_path, with_name(name, place), chunk_bytes)
    expected = [f"op{i}" if i != place else mended for i in range(6)]
    assert names == [name for name in expected if name is not None]
    assert len(warnings) == 2  # the other one: no step is marked


def test_broken_events_are_counted_with_the_place_of_the_first(tmp_path: Path):
    content = with_name(b'a"b', 1).replace(b'"op3"', rb'"a\q"')
    _, warnings = read(tmp_path, content, 1 << 20)
    place = content.index(b'a"b') + len(b'a"')
    assert warnings[-1] == f"broken text in 2 events: 1 mended, 1 left out (the first at byte {place})"


@pytest.mark.parametrize("word", [b"inf", b"-inf", b"nan", b"NaN", b"-Infinity", b"-nan(ind)"])
def test_value_that_is_no_number_costs_nothing(tmp_path: Path, word: bytes):
    content = with_name(b"op1", 1).replace(b'"k": 1', b'"k": ' + word)
    names, _ = read(tmp_path, content, 1 << 20)
    assert names == [f"op{i}" for i in range(6)]


def test_time_that_is_no_number_costs_its_event(tmp_path: Path):
    names, _ = read(tmp_path, with_name(b"op1", 1).replace(b'"ts": 10,', b'"ts": nan,'), 1 << 20)
    assert names == ["op0", "op2", "op3", "op4", "op5"]


def test_trace_of_one_broken_event_is_refused(tmp_path: Path):
    with pytest.raises(SourceError, match="malformed JSON"):
        read(tmp_path, with_name(b'a"b', 0, count=1), 1 << 20)


def test_pair_of_surrogates_is_one_character():
    assert mend_event(rb'{"name": "\ud83d\ude00\q"}') == rb'{"name": "\ud83d\ude00\\q"}'
