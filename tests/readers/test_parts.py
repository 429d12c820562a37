"""A trace that several threads decode is the trace that one thread decodes, wherever its blocks are cut."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.readers.test_records import BYTES, KERNEL, compiled, events, told, trace
from tracker.errors import SourceError
from tracker.readers import ReadOptions
from tracker.readers._event_texts import MOST_MISSES, EventPart, EventTexts, InParts
from tracker.readers._source import SourceText
from tracker.readers.torch_profiler import native, reading
from tracker.readers.torch_profiler.collector import Collector
from tracker.readers.torch_profiler.kinds import KERNELS
from tracker.readers.torch_profiler.reading import captures_of
from tracker.readers.torch_profiler.records import Batch

pytestmark = compiled
LENIENT = ReadOptions(allow_partial=True, skip_bad_rows=True)
EVENT = json.dumps(KERNEL)


def read(path: Path, threads: int, block_bytes: int, options: ReadOptions) -> Any:
    """What is read, or why nothing is, in blocks of so many bytes."""
    try:
        text = SourceText(path, options, block_bytes=block_bytes)
        captures, warnings = captures_of(text, options, chunk_bytes=200, threads=threads)
    except SourceError as error:
        return str(error)
    return told(captures), warnings


def assert_alike(path: Path, block_bytes: int, options: ReadOptions = LENIENT) -> Any:
    one, several = (read(path, threads, block_bytes, options) for threads in (1, 3))
    assert several == one
    return several


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("parts") / "trace.json"


@given(
    happened=st.lists(events(), min_size=1, max_size=12),
    indent=st.sampled_from([None, 0, 3]),
    is_ascii=st.booleans(),
    block_bytes=st.integers(1, 600),
    changes=st.lists(st.tuples(st.floats(0, 1), BYTES, st.integers(0, 3)), max_size=2),
)
def test_whatever_stands_there_is_read_alike(place, happened, indent, is_ascii, block_bytes, changes):
    text = json.dumps({"traceEvents": happened}, indent=indent, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    for share, bytes_, cut in changes:
        position = int(share * len(text))
        text = text[:position] + bytes_ + text[position + cut :]
    place.write_bytes(text)
    one, several = (read(place, threads, block_bytes, LENIENT) for threads in (1, 3))
    # what is left of an event whose text is broken depends on what else its block holds, with any number of threads
    assert several == one or (is_broken(one) and is_broken(several))


def is_broken(found: Any) -> bool:
    """Whether the text of an event was no JSON."""
    if isinstance(found, str):
        return "malformed JSON" in found or "part of another one" in found
    return any("broken text" in warning for warning in found[1])


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("block_bytes", [300, 4000, 1 << 20])
def test_a_trace_of_everything_is_read_alike(place, indent, block_bytes):
    place.write_text(json.dumps(trace(), indent=indent))
    captures, _ = assert_alike(place, block_bytes, ReadOptions())
    assert [len(rows) for rows in captures[0][4].values()] == [301, 300, 300, 300, 300, 0, 300]


LIST = ", ".join([EVENT] * 9)
HOSTILE = {
    "a text that is a list of events": json.dumps({"name": f"[{LIST}]"}),
    "a text that ends as an event does": '{"name": "}, {", "args": {"a": "}, {\\"ph\\": \\"X\\"}, {"}}',
    "escapes at the end of texts": '{"name": "\\\\", "args": {"a\\"}, {": "\\\\\\"", "b": "\\u007d, \\u007b"}}',
    "a list of events among its args": '{"ph": "X", "args": {"a": [LIST]}}',
    "lists of lists of them": '{"ph": "X", "args": {"a": [[LIST], [LIST]]}}',
    "twice the events": '{"ph": "X"}], "traceEvents": [' + EVENT,
    "a list behind the events": '{"ph": "X"}], "more": [' + LIST,
    "a comma without an event": '{"ph": "X"},',
    "no comma": '{"ph": "X"} {"ph": "X"}',
    "something else than an event": "7, [], null",
    "times as text": EVENT.replace('"ts": 1', '"ts": "1.5"'),
    "a time beyond all": EVENT.replace('"ts": 1', '"ts": 1e30'),
    "a negative duration": EVENT.replace('"dur": 1', '"dur": -1'),
    "half a character": '{"name": "\\ud800"}',
    "nothing but blanks between events": '{"ph": "X"},' + " " * 900 + EVENT,
    "an event longer than its blocks": '{"ph": "X", "args": {"a": "%s"}}' % ("}, {" * 900),
}


@pytest.mark.parametrize("block_bytes", [64, 1000])
@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_events_are_read_alike(place, what, block_bytes):
    happened = f"LIST, {HOSTILE[what]}, LIST".replace("LIST", LIST)
    place.write_text('{"traceEvents": [' + happened + '], "rank": 1}')
    for options in (ReadOptions(), LENIENT):
        assert_alike(place, block_bytes, options)


def test_characters_are_cut_nowhere(place):
    place.write_text(f'[{LIST}, {{"name": "é€😀"}}, {LIST}]')
    for block_bytes in range(1, 12):
        assert_alike(place, block_bytes, ReadOptions())


@pytest.mark.parametrize("bad", [b"\xff", b"\xe2\x82", b"\x00", b"\x80\x80"])
def test_bytes_that_are_no_text_are_read_alike_and_counted_once(place, bad):
    event = EVENT.replace('"k"', '"k?"').encode().replace(b"?", bad)
    place.write_bytes(b"[%s, %s, %s]" % (LIST.encode(), event, LIST.encode()))
    assert_alike(place, 300)


def test_a_trace_that_ends_early_is_read_as_far_as_it_goes(place):
    text = json.dumps(trace(ops=30)).encode()
    packed = gzip.compress(text)
    for share in (0.2, 0.5, 0.9, 0.99):
        place.write_bytes(text[: int(share * len(text))])
        assert "ends in the middle of its events" in assert_alike(place, 700, ReadOptions())
        assert_alike(place, 700)
        place.write_bytes(packed[: int(share * len(packed))])
        assert "the gzip stream ends early" in assert_alike(place, 700, ReadOptions())
        assert_alike(place, 700)


def test_an_error_of_the_file_comes_behind_those_of_the_events_before_it(place):
    wrong = EVENT.replace('"dur": 1', '"dur": -1')
    place.write_text(f"[{LIST}, {wrong}, {LIST}, {LIST}, {LIST}]")
    size = place.stat().st_size
    assert "dur is negative" in assert_alike(place, 200, ReadOptions(max_bytes=size - 300))
    assert "larger than the limit" in assert_alike(place, 200, ReadOptions(max_bytes=size - 300, skip_bad_rows=True))


@pytest.mark.parametrize("size", [2000, 9000, 30_000])
def test_a_file_that_changes_while_it_is_read_is_what_was_read(place, size):
    """It grows or shrinks at the third block; its digest is that of what came, and the rows are those of that."""
    whole = json.dumps({"traceEvents": [KERNEL] * 100}).encode()
    seen = []
    for threads in (1, 3):
        place.write_bytes(whole)
        text = SourceText(place, LENIENT, block_bytes=1000)
        text._check_size = _changing(place, whole, size)  # type: ignore[method-assign]
        captures, warnings = captures_of(text, LENIENT, chunk_bytes=500, threads=threads)
        seen.append((told(captures), warnings))
    assert seen[0] == seen[1]


def _changing(path: Path, whole: bytes, size: int) -> Any:
    calls = iter(range(1000))

    def check() -> None:
        if next(calls) == 2:
            path.write_bytes((whole[:-2] + b", " + whole[17:])[:size])

    return check


class _Counted:
    """The parts of a text, and how many of them count."""

    def __init__(self, path: Path, block_bytes: int) -> None:
        collector = Collector(path, ReadOptions(), 2)
        decode = collector.in_parts(2)
        assert decode is not None
        self.texts = EventTexts(
            SourceText(path, ReadOptions(), block_bytes=block_bytes),
            collector.decode,
            exporter="x",
            chunk_bytes=500,
            decode_first=collector.decode_first,
            in_parts=InParts(self._decode, 2),
        )
        self.parts: list[EventPart[Any]] = []
        self._own = decode.decode
        batches = [chunk.events for chunk in self.texts if isinstance(chunk.events, Batch)]
        self.kernels = b"".join(batch.records[KERNELS] for batch in batches)[:: native.RECORD_BYTES]

    def _decode(self, text: bytes, is_start: bool) -> EventPart[Any]:
        self.parts.append(self._own(text, is_start))
        return self.parts[-1]


def test_blocks_of_usual_events_are_all_decoded_in_parts(place):
    place.write_text(json.dumps([KERNEL] * 500))
    counted = _Counted(place, 4000)
    assert counted.texts._misses == 0
    assert len(counted.parts) == place.stat().st_size // 4000 + 1
    assert len(counted.kernels) == 499  # the last event is read by msgspec


def test_after_too_many_misses_one_thread_reads_on(place):
    odd = {**KERNEL, "ts": 1.0005}
    place.write_text(json.dumps(([KERNEL] * 50 + [odd]) * 40))
    counted = _Counted(place, 2000)
    assert counted.texts._misses == MOST_MISSES + 1
    assert len(counted.parts) < 100


def test_lists_among_args_do_not_mislead_the_guess():
    decoder = native.module.Decoder({b"kernel": KERNELS}, {}, 1)
    two = f"{EVENT}, {EVENT}, "
    for inside in ('1}, {"b": 2}, {"c": 3}]}}, ', '"}, ', '"b"}, {"ph": "no"}]}}, '):
        records, start, end = decoder.decode_inside((inside + two).encode())
        assert (start, end) == (len(inside), len(inside + two) - 1)
        assert len(records[KERNELS]) == 2 * native.RECORD_BYTES
    assert decoder.decode_inside(b"") == ((b"",) * 12, -1, 0)
    assert decoder.decode_inside(b'"a"}, "b"') == ((b"",) * 12, -1, 0)
    with pytest.raises(TypeError):
        decoder.decode_inside("text")


@pytest.mark.parametrize(("size", "allowed", "threads"), [(2 << 20, 8, 4), (2 << 20, 2, 2), (2 << 20, 1, 1), (9, 8, 1)])
def test_threads_are_for_large_files(tmp_path, size, allowed, threads):
    path = tmp_path / "a.json"
    path.write_bytes(b" " * size)
    options = ReadOptions(threads=allowed)
    assert reading._threads_for(SourceText(path, options), options) == threads
