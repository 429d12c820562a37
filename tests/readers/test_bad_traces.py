"""Bad input: one clear error that names file, place, problem and remedy; partial only when asked for."""

from __future__ import annotations

import gc
import gzip
import json

import pytest

from tests.readers.traces import op, write
from tracker import readers
from tracker.errors import SourceError
from tracker.profile import MISSING
from tracker.readers import Found, ReadOptions

pytestmark = pytest.mark.usefixtures("decoder")

GOOD = json.dumps({"traceEvents": [op("first", 1, 2), op("second", 3, 4)]})


def read(path, **options):
    return readers.read(Found(path, "torch_profiler"), ReadOptions(**options))


def problem(tmp_path, content, **options):
    """What reading a file of this content says, without the path."""
    path = tmp_path / "bad.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SourceError) as caught:
        read(path, **options)
    assert str(caught.value).startswith(f"{path}: ")
    assert caught.value.remedy
    return str(caught.value).removeprefix(f"{path}: ")


def event(**times):
    return json.dumps({"traceEvents": [{**op("aten::mm", 1, 1), **times}]})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "the file is empty"),
        (" \n", "the file is empty"),
        ("{}", "byte 0: JSON without a list 'traceEvents'"),
        ('{"traceEvents": 3}', "byte 0: JSON without a list 'traceEvents'"),
        ("[]", "the trace holds no events"),
        ('{"traceEvents": []}', "the trace holds no events"),
        ("Epoch 1: loss 0.3 [ok]", "byte 0: not JSON"),
        (b"\xff\xfe{}", "byte 0: the text is UTF-16; save it as UTF-8"),
        (
            '{"traceEvents": [{"ph": "X"}]}\n"ph": "X"}]}',
            "byte 29: behind the end of the trace stands a part of another",
        ),
        ("[1]", "byte 1: not an event of a trace: Expected `object`, got `int`"),
        ('[{"ph": "X"}, "a", {}]', "byte 14: not an event of a trace: Expected `object`, got `str`"),
        ('[{"args": {}}, {"args": "x"}]', "byte 15: not an event of a trace"),
        ('[{"ph": "X"} {"ph": "X"}]', "byte 13: malformed JSON: expected ',' or ']'"),
        ('[{"ph": "X"},]', "byte 13: malformed JSON: "),
        ('[{"ph": "X"}] x', "byte 14: malformed JSON: text behind the event list"),
        ('{"traceEvents": [{"ph": "X"}], "a": }', "byte 36: malformed JSON"),
        ('{"traceEvents": [{"ph": 01}]}', "malformed JSON"),
        ('{"a" 1, "traceEvents": [{"ph": "X"}]}', "byte 5: malformed JSON"),
        ('{"traceEvents": [{}], "traceEvents": [{"ph": "X"}]}', "'traceEvents' stands twice"),
        ('[{"x": ' + "[" * 100_000 + "]" * 100_000 + "}]", "nested too deeply"),
        ('{"x": ' + "[" * 100_000 + "]" * 100_000 + ', "traceEvents": [{}]}', "nested too deeply"),
        ('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_place(tmp_path, content, says):
    assert says in problem(tmp_path, content)


@pytest.mark.parametrize(
    ("times", "says"),
    [
        ({"ts": float("nan")}, "NaN is no JSON number"),
        ({"dur": float("inf")}, "Infinity is no JSON number"),
        ({"dur": -1}, "byte 17: event 'aten::mm': dur is negative"),
        ({"dur": -0.5}, "byte 17: event 'aten::mm': dur is negative"),
        ({"ts": 1e30}, "byte 17: event 'aten::mm': ts is 1e+30, beyond the range"),
        ({"ts": 10**18}, "byte 17: event 'aten::mm': ts is 1000000000000000000, beyond the range"),
        ({"ts": "soon"}, "byte 17: event 'aten::mm': ts is \"soon\", expected a number"),
        ({"dur": None}, "byte 17: event 'aten::mm': dur is missing"),
    ],
)
def test_impossible_times_are_refused_with_their_event(tmp_path, times, says):
    assert says in problem(tmp_path, event(**times))


def test_huge_exponents_cost_nothing(tmp_path):
    text = event().replace('"ts": 1', '"ts": 1e999999999')
    assert "1e999999999" in problem(tmp_path, text) or "out of range" in problem(tmp_path, text)


def test_bad_events_are_counted_where_the_caller_skips_them(tmp_path):
    profile = read(write(tmp_path, [op("bad", 1, -1), op("good", 1, 1)]), skip_bad_rows=True)
    assert len(profile.captures[0].events.ops) == 1
    assert profile.warnings[0] == "1 events with impossible times were left out"


@pytest.mark.parametrize("length", [len(GOOD) - 1, len(GOOD) - 2, len(GOOD) - 3, GOOD.index("second"), 60])
def test_truncated_trace_names_the_byte_and_the_way_out(tmp_path, length):
    said = problem(tmp_path, GOOD[:length])
    assert said.startswith(f"byte {length}: the trace ends")
    assert "--allow-partial" in said


@pytest.mark.parametrize(("length", "names"), [(len(GOOD) - 1, 2), (len(GOOD) - 3, 1), (GOOD.index("second"), 1)])
def test_truncated_trace_gives_its_whole_events_where_asked(tmp_path, length, names):
    path = tmp_path / "cut.json"
    path.write_text(GOOD[:length])
    profile = read(path, allow_partial=True)
    assert len(profile.captures[0].events.ops) == names
    assert profile.captures[0].quality == "partial"
    assert f"byte {length}" in profile.captures[0].quality_reason
    assert profile.warnings[0].startswith("partial: ")


def test_truncated_before_the_first_event_is_refused_even_so(tmp_path):
    assert "no events" in problem(tmp_path, GOOD[:40], allow_partial=True)


def test_truncated_gzip_is_refused_or_partial(tmp_path):
    whole = gzip.compress(json.dumps({"traceEvents": [op(f"op{i * i}", i, 1) for i in range(2000)]}).encode())
    path = tmp_path / "cut.json.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match=r"the gzip stream ends early.*--allow-partial"):
        read(path)
    capture = read(path, allow_partial=True).captures[0]
    assert (capture.quality, capture.quality_reason) == ("partial", "the gzip stream ends early")
    assert 100 < len(capture.events.ops) < 2000


def test_damaged_gzip_is_refused(tmp_path):
    assert "damaged gzip" in problem(tmp_path, b"\x1f\x8bnonsense, not a gzip header at all")
    whole = bytearray(gzip.compress(GOOD.encode()))
    whole[-6] ^= 0xFF  # the checksum
    assert "damaged gzip" in problem(tmp_path, bytes(whole))


def test_content_above_the_limit_is_refused(tmp_path):
    assert "larger than the limit of 20 bytes" in problem(tmp_path, gzip.compress(GOOD.encode()), max_bytes=20)


def test_missing_file_is_told(tmp_path):
    with pytest.raises(SourceError, match="cannot be opened"):
        read(tmp_path / "no.json")


def test_garbage_collector_is_as_before_after_an_error(tmp_path):
    assert gc.isenabled()
    problem(tmp_path, "{}")
    assert gc.isenabled()


def test_absurd_numbers_in_args_are_missing_not_a_crash(tmp_path):
    huge = 10**30
    args = {"Sequence number": huge, "Fwd thread id": "x", "Input Dims": [[huge]], "Input type": ["float"]}
    events = [
        op("nccl:all_reduce", 1, 2, cat="user_annotation", tid=huge, **args),
        op("k", 3, 4, cat="kernel", pid=0, tid="stream", stream=huge, correlation=huge, bytes=[1], device="x"),
    ]
    found = read(write(tmp_path, events)).captures[0].events
    assert (found.ops.sequence.tolist(), found.collectives.bytes.tolist()) == ([-1], [MISSING])
    assert (found.device.correlation.tolist(), found.device.stream.tolist()) == ([-1], [-1])
    assert found.device.bytes.tolist() == [MISSING]
