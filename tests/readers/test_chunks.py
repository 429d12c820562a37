"""Any chunk size gives the events that `json.loads` gives."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.readers import reference_reader
from tests.readers.helpers import decoding
from tracker.errors import SourceError
from tracker.readers import ReadOptions
from tracker.readers._event_texts import EventTexts
from tracker.readers._source import SourceText
from tracker.readers._times import numbers_to_ns, text_to_ns
from tracker.readers.torch_profiler.reading import captures_of
from tracker.readers.torch_profiler.schema import EVENTS

NAMES = st.text(alphabet=st.sampled_from('a{}[],:"\\ é\n')) | st.sampled_from(
    ["aten::mm", "}, {", '"}]', "ProfilerStep#3"]
)
NUMBERS = (
    st.integers(0, 10**15) | st.decimals(0, 10**13, places=3).map(float) | st.decimals(0, 10**6, places=7).map(float)
)
NESTED = st.recursive(
    NAMES | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner), max_leaves=6
)
EVENT = st.fixed_dictionaries(
    {
        "ph": st.just("X"),
        "cat": st.sampled_from(["cpu_op", "kernel", "Memcpy", "python_function", "cuda_runtime", "Trace"]),
        "name": NAMES,
        "pid": st.integers(0, 3),
        "tid": st.integers(0, 3) | st.sampled_from(["stream 7", "5555"]),
        "ts": NUMBERS,
        "dur": NUMBERS,
        "args": st.fixed_dictionaries({}, optional={"env": NESTED, "list": st.lists(st.dictionaries(NAMES, NESTED))}),
    }
)
TAIL = st.dictionaries(st.sampled_from(["INFO", "metadata", "z"]), NESTED | st.lists(st.dictionaries(NAMES, NESTED)))


@settings(suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
@pytest.mark.parametrize("compiled", [True, False])
@given(
    events=st.lists(EVENT, min_size=1, max_size=8),
    head=TAIL,
    tail=TAIL,
    bare=st.booleans(),
    indent=st.sampled_from([None, 0, 2]),
    chunk_bytes=st.integers(1, 400),
)
def test_any_chunk_size_reads_what_json_reads(compiled, events, head, tail, bare, indent, chunk_bytes):
    trace = events if bare else {**{f"a{key}": value for key, value in head.items()}, "traceEvents": events, **tail}
    text = json.dumps(trace, indent=indent, ensure_ascii=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        path.write_text(text)
        source = SourceText(path, ReadOptions(), block_bytes=chunk_bytes)
        with decoding(compiled=compiled):
            captures, _ = captures_of(source, ReadOptions(), chunk_bytes=chunk_bytes)
    expected = reference_reader.totals(text)
    found = reference_reader.totals_of_captures(captures)
    assert found.spans == expected.spans
    # a number that stands there twice is counted on, as in cycles of one schedule
    if [event["name"] for event in events].count("ProfilerStep#3") < 2:
        assert found.steps == expected.steps


@given(events=st.lists(EVENT, min_size=1, max_size=4), cut=st.floats(0, 1), chunk_bytes=st.integers(1, 200))
def test_any_cut_is_an_error_or_its_whole_events(events, cut, chunk_bytes):
    text = json.dumps({"traceEvents": events}).encode()
    text = text[: int(cut * (len(text) - 1))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        path.write_bytes(text)
        options = ReadOptions(allow_partial=True)
        chunks = EventTexts(
            SourceText(path, options), EVENTS.decode, exporter="x", allow_partial=True, chunk_bytes=chunk_bytes
        )
        try:
            found = [event.name for chunk in chunks for event in chunk.events]
        except SourceError:
            assert b"traceEvents" not in text or b"[" not in text
            return
    assert found == [event["name"] for event in events[: len(found)]]
    assert chunks.partial


@given(st.lists(st.integers(0, 2**42 * 1000 - 1), min_size=1))
def test_whole_nanoseconds_below_2_to_the_42_us_survive_a_double(values):
    numbers = numbers_to_ns([float(f"{ns // 1000}.{ns % 1000:03d}") for ns in values])
    assert numbers is not None
    assert numbers.tolist() == values


@given(st.decimals(0, 2**42 - 1, allow_nan=False, places=9))
def test_long_fractions_are_rounded_once_or_left_to_the_text(value):
    numbers = numbers_to_ns([float(value)])
    exact = text_to_ns(str(value).encode())
    assert numbers is None or numbers.tolist() == [exact]


@pytest.mark.parametrize("guesses_fail", [False, True])
def test_lists_of_objects_in_args_do_not_mislead_the_cut(tmp_path, guesses_fail):
    many = [{"k": i} for i in range(50 if guesses_fail else 2)]
    events = [{"ph": "X", "name": str(i), "args": {"list": many}} for i in range(40)]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"traceEvents": events, "deviceProperties": many}))
    chunks = EventTexts(SourceText(path, ReadOptions(), block_bytes=100), EVENTS.decode, exporter="x", chunk_bytes=300)
    assert Counter(event.name for chunk in chunks for event in chunk.events) == Counter(str(i) for i in range(40))
