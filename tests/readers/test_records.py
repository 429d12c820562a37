"""What the compiled decoder reads is what msgspec reads: the same rows, the same warnings, the same errors."""

from __future__ import annotations

import gc
import json
import shutil
import subprocess
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from scripts import build_native
from tests.conftest import RUN
from tests.readers.helpers import decoding
from tracker.errors import SourceError
from tracker.readers import ReadOptions
from tracker.readers._source import SourceText
from tracker.readers.torch_profiler import native, records
from tracker.readers.torch_profiler.collector import Collector
from tracker.readers.torch_profiler.reading import captures_of

ROOT = Path(__file__).parents[2]
compiled = pytest.mark.skipif(not native.is_built(), reason="the decoder is not built here")


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
            {"cat": "kernel", "name": f"k{i % 13}", "pid": 0, "tid": 7, **event,
             "args": {"correlation": i, "stream": 7, "device": 0, "blocks per SM": i / 64}},
            {"ph": "i", "name": "[memory]", **lane, "ts": 10 * i, "args": {"Bytes": 64, "Addr": i, "Device Type": 1}},
            {"ph": "s", "cat": "ac2g", "id": f"flow {i}" if i % 10 == 9 else i, **lane, "ts": 10 * i},
        ]  # fmt: skip
    reduce = {"Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float", "Process Group Name": "0"}
    events.append({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 99999, "dur": 5,
                   "args": reduce})  # fmt: skip
    events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "autograd"}})
    head = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]}
    return {**head, "traceEvents": events, "distributedInfo": {"rank": 3}, **more}


def told(captures: Any) -> list[Any]:
    """Captures with texts instead of codes and rows in an order of their own: what chunks and numbering decide."""
    return [(c.rank, c.device, c.quality, c.sources[0].digest, dict(tables(c.events))) for c in captures]


def tables(events: Any) -> Iterator[tuple[str, Any]]:
    texts = events.strings.texts
    of = events.collectives
    named = [[texts[code] for code in column.tolist()] for column in (of.kind, of.group, of.group_ranks, of.data_type)]
    collectives = [*zip(*named, of.group_size.tolist(), of.bytes.tolist(), strict=True)]
    for table in ("ops", "frames", "launches", "device", "allocations", "markers"):
        rows = getattr(events, table)
        columns = []
        for name, column in asdict(rows).items():
            if name in ("name", "input_shapes", "input_types", "module", "call_stack", "component"):
                columns.append([texts[code] for code in column.tolist()])
            elif name == "collective":  # its number depends on the size of chunks
                columns.append([() if row < 0 else collectives[row] for row in column.tolist()])
            elif name == "thread":
                columns.append([events.threads[thread] for thread in column.tolist()])
            elif isinstance(column, np.ndarray):
                columns.append(column.tolist())
        yield table, sorted(zip(*columns, strict=True))
    metrics = events.extras.kernel_metrics
    names = [texts[code] for code in metrics.metric.tolist()]
    device = events.device
    spans = zip(device.start_ns.tolist(), device.end_ns.tolist(), device.stream.tolist(), strict=True)
    kernels = list(spans)  # the number of a row depends on the size of chunks
    of = [kernels[row] for row in metrics.event.tolist()]
    yield "kernel_metrics", sorted(zip(of, names, metrics.value.tolist(), strict=True))


def read(path, *, chunk_bytes: int = 2000, options: ReadOptions | None = None) -> Any:
    """What is read, or why nothing is."""
    options = options or ReadOptions()
    try:
        captures, warnings = captures_of(
            SourceText(path, options, block_bytes=max(1, chunk_bytes // 2)), options, chunk_bytes=chunk_bytes
        )
    except SourceError as error:
        return str(error)
    return told(captures), warnings


def both(path, **how: Any) -> list[Any]:
    """As the compiled decoder reads it, and as msgspec does."""
    found = []
    for is_compiled in (True, False):
        with decoding(compiled=is_compiled):
            found.append(read(path, **how))
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("traces") / "trace.json"


def test_where_it_can_be_compiled_the_decoder_is_built_from_these_sources(tmp_path):
    try:
        build_native.compile_native(ROOT, tmp_path)
    except (Exception, SystemExit) as error:  # noqa: BLE001 no compiler, no headers, no linker
        pytest.skip(f"it cannot be compiled here: {error}")
    assert native.is_built(), "run: python scripts/build_native.py"
    assert records.RECORD.itemsize == native.RECORD_BYTES


@compiled
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("chunk_bytes", [200, 2000, 1 << 20])
def test_a_trace_of_everything_is_read_alike(place, indent, chunk_bytes):
    place.write_text(json.dumps(trace(), indent=indent))
    fast, slow = both(place, chunk_bytes=chunk_bytes)
    assert fast == slow
    assert [len(rows) for rows in fast[0][0][4].values()] == [301, 300, 300, 300, 300, 0, 300]


@compiled
def test_all_but_the_last_event_of_a_chunk_are_taken_at_once(place):
    events = [event for event in trace()["traceEvents"] if not isinstance(event.get("id"), str)]
    text = json.dumps(events)[1:-1].encode()
    batch, end = Collector(place, ReadOptions()).decode_first(text)
    assert json.loads(text[end:]) == events[-1]
    kinds = records.record_types()
    rows = [len(part) // kind.itemsize for part, kind in zip(batch.records, kinds, strict=True)]
    ops, annotations, frames, launches, _, _, kernels, *_, allocations, arrows, threads = rows
    assert (ops, annotations, frames, launches, kernels) == (301, 0, 300, 300, 300)
    assert (allocations, arrows, threads) == (300, 270, 0)  # the last event names a thread


@compiled
def test_from_an_unusual_event_on_msgspec_reads(place):
    events = trace(ops=2)["traceEvents"]
    usual = json.dumps(events)[1:-1]
    for odd in (
        '{"ph": "X", "cat": "cpu_op", "ts": 1e3, "dur": 1}',
        '{"ph": "X", "pid": 1.5}',
        '{"ph": 7}',
        "7",
        '{"a": tru}',
    ):
        batch, end = Collector(place, ReadOptions()).decode_first(f"{usual}, {odd}, {usual}".encode())
        assert (end, len(batch.records)) == (len(usual) + 1, 12)
        assert Collector(place, ReadOptions()).decode_first(f"{odd}, {usual}".encode()) is None


USUAL = """{
      "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5, "dur": 3,
      "args": {
        "External id": 7, "Ev Idx": 9
      }
    }"""


@compiled
@pytest.mark.parametrize(
    ("usual", "unusual"),
    [
        ('"pid": 1, ', '"pid": 1 '),  # a comma is missing
        ('"External id": 7, "Ev', '"External id": 7 "Ev'),
        ('"External id"', ', "External id"'),  # one too many
        ('"Ev Idx": 9', '"Ev Idx": 9,'),
        ('"pid": 1', '"pid" 1'),
        ('"tid": 1', '"tid\\u0021": 1'),  # another key
        ('"tid": 1', '"tie": 1'),
        ('"ts": 5', '"args": {}, "ts": 5'),  # twice
        ("      }", ""),
    ],
)
def test_keys_as_of_the_events_before_but_for_a_character_are_read_alike(place, usual, unusual):
    events = [*[USUAL] * 3, USUAL.replace(usual, unusual), *[USUAL] * 3]
    assert events[3] != USUAL
    place.write_text(f"[{', '.join(events)}]")
    fast, slow = both(place, chunk_bytes=10_000)
    assert fast == slow


@compiled
def test_keys_in_any_order_are_read_alike(place):
    events = trace(ops=40)["traceEvents"]
    for number, event in enumerate(events):
        turned = list(event.items())[number % 5 :] + list(event.items())[: number % 5]
        event.clear()
        event.update(turned)
    place.write_text(json.dumps(events, indent=2))
    fast, slow = both(place, chunk_bytes=100_000)
    assert fast == slow
    assert len(fast[0][0][4]["ops"]) == 41


@compiled
def test_one_event_that_is_wrong_is_told_with_its_place(place):
    for wrong in ({"dur": -1}, {"ts": None}, {"ts": "soon"}, {"dur": 1e18}, {"name": 5}, {"tid": []}, {"args": 3}):
        events = trace()["traceEvents"]
        next(event for event in reversed(events) if event.get("cat") == "kernel").update(wrong)
        place.write_text(json.dumps({"traceEvents": events}))
        fast, slow = both(place)
        assert "trace.json: byte 24" in fast  # of 242 kB
        assert fast == slow
        fast, slow = both(place, options=ReadOptions(skip_bad_rows=True))
        assert fast == slow


@compiled
def test_a_trace_that_ends_early_is_read_as_far_as_it_goes(place):
    text = json.dumps(trace())
    for end in range(len(text) - 400, len(text), 1 if RUN == "all" else 29):
        place.write_text(text[:end])
        for options in (ReadOptions(), ReadOptions(allow_partial=True)):
            fast, slow = both(place, options=options)
            assert fast == slow


KERNEL = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1}


@compiled
@pytest.mark.parametrize("pid", [" 5", "1_0", "+5", "٣", "x", "12345678901234567890", 5, "5", -1])
def test_the_device_of_a_kernel_is_that_of_its_own_lane(place, pid):
    place.write_text(json.dumps([{**KERNEL, "pid": pid}, {**KERNEL, "pid": "x"}, KERNEL, {**KERNEL, "name": "last"}]))
    fast, slow = both(place)
    assert fast == slow
    assert len(fast[0]) == (3 if pid in (5, "5", -1) else 2)


@compiled
@pytest.mark.parametrize("wrong", ['"ts": [], "dur": 1', '"ts": 1e999, "dur": 1', '"ts": 1, "dur": true'])
@pytest.mark.parametrize("chunk_bytes", [60, 1000])
def test_what_is_wrong_with_events_that_nobody_asks_for_is_no_error(place, wrong, chunk_bytes):
    precise = json.dumps(KERNEL).replace('"ts": 1', '"ts": 1736413971558972.912')
    place.write_text(f'[{precise}, {precise}, {{"ph": "B", "cat": "zz", "name": "q", {wrong}}}, {precise}]')
    fast, slow = both(place, chunk_bytes=chunk_bytes)
    assert fast == slow
    assert len(fast[0][0][4]["device"]) == 3


REALS = ["0", "-0.0", "75", "0.84848", "314.242432", "0.000000000000000000000125", "999999999999999.5", "0.1e1",
         "123456789012345678", "0.8484848484848485", "0.30000000000000004", '"0.25"', '"x"', "true", "null", "-99",
         "0.0000000000000000000000001"]  # fmt: skip


@compiled
@pytest.mark.parametrize("real", REALS)
def test_real_numbers_of_kernels_are_read_alike(place, real):
    kernel = json.dumps({**KERNEL, "args": {"blocks per SM": "here", "warps per SM": 2}}).replace('"here"', real)
    place.write_text(f"[{kernel}, {kernel}, {json.dumps(KERNEL)}]")
    fast, slow = both(place, chunk_bytes=1000)
    assert fast == slow
    number = json.loads(real)
    value = float(number) if real[0] != "t" and number not in (None, "x", -99) else None
    blocks = [row[2] for row in fast[0][0][4]["kernel_metrics"] if row[1] == "blocks per SM"]
    assert blocks == [] if value is None else [value, value]


@compiled
def test_long_real_numbers_are_usual(place):
    kernel = json.dumps({**KERNEL, "args": {"warps per SM": 0.30000000000000004}})
    text = f"{kernel}, {kernel}"
    assert Collector(place, ReadOptions()).decode_first(text.encode()) is not None


@compiled
def test_letters_of_all_languages_are_usual(place):
    text = json.dumps([{**KERNEL, "name": "\ud55c\uae00 é \u4e2d"}] * 2)[1:-1]
    assert "\\ud55c" in text
    assert Collector(place, ReadOptions()).decode_first(text.encode()) is not None


def test_a_flow_category_that_is_no_text_is_in_no_trace(place):
    place.write_text(json.dumps([KERNEL]))
    _, warnings = read(place, options=ReadOptions(flow_category="a\udcff"))
    assert warnings[0] == "no flow events of category 'a\udcff'; linked by correlation"


def test_nothing_of_a_trace_is_kept_when_it_is_read(place, monkeypatch):
    """Its texts would wait for the garbage collector, which is at rest while the next ones are read."""
    place.write_text(json.dumps(trace()))
    made = []
    begin = Collector.__init__
    monkeypatch.setattr(Collector, "__init__", lambda self, *how: made.append(weakref.ref(self)) or begin(self, *how))
    gc.disable()
    try:
        read(place)
        assert [one() for one in made] == [None]
    finally:
        gc.enable()


@compiled
def test_memory_events_of_no_size_are_no_allocations(place):
    event = {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 1, "args": {}}
    place.write_text(json.dumps([event, event, KERNEL]))
    fast, slow = both(place)
    assert fast == slow
    assert {table: len(rows) for table, rows in fast[0][0][4].items() if rows} == {"device": 1}


@compiled
def test_texts_are_forgotten_when_there_are_too_many_and_found_again(place, monkeypatch):
    place.write_text(json.dumps(trace()))
    whole = read(place)
    begun = []
    monkeypatch.setattr(records, "MAX_TEXT_BYTES", 1)
    begin = records.Records.__init__
    monkeypatch.setattr(records.Records, "__init__", lambda self, *how: begun.append(begin(self, *how)))
    assert read(place) == whole
    assert len(begun) > 50


@compiled
def test_a_module_of_other_sources_does_not_count(place, monkeypatch):
    monkeypatch.setattr(native, "sources_digest", lambda folder: "of others")
    assert not native.is_built()
    assert Collector(place, ReadOptions()).decode_first is None


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler here")
@pytest.mark.parametrize("header", ["scan", "event", "texts", "records"])
def test_what_reads_json_knows_nothing_of_python(tmp_path, header):
    (tmp_path / "alone.c").write_text(f'#include "{Path(native.__file__).parent / header}.h"\nint x;\n')
    subprocess.run(["cc", "-std=c99", "-fsyntax-only", tmp_path / "alone.c"], check=True)


@compiled
def test_bounds_of_what_is_asked_of_the_module():
    new = native.module.Decoder
    decoder = new({b"cpu_op": 0}, {}, 1)
    assert decoder.held_bytes() < 200_000
    assert decoder.decode(b"") == ((b"",) * 12, 0)
    for wrong in (lambda: decoder.new_texts(6), lambda: decoder.new_texts(-1), lambda: new({b"a": 9}, {}, 1),
                  lambda: new({}, {b"a": -1}, 1)):  # fmt: skip
        with pytest.raises(ValueError, match="no such"):
            wrong()
    for wrong in (lambda: decoder.decode("text"), lambda: new({"a": 1}, {}, 1), lambda: new([], {}, 1),
                  lambda: new({}, {}, 1, more=2)):  # fmt: skip
        with pytest.raises(TypeError):
            wrong()


TEXTS = st.text(alphabet=st.sampled_from('a{}[],:"\\ é\n\x00/😀'), max_size=12) | st.sampled_from(
    [
        "aten::mm",
        "}, {",
        '"}]',
        "ProfilerStep#3",
        "[memory]",
        "thread_name",
        "nn.Module: Linear_0",
        "stream 7",
        "12",
        "a.b",
    ]
)
NUMBERS = st.one_of(
    st.integers(0, 10**6),
    st.integers(-(2**70), 2**70),
    st.sampled_from(
        [0, -0.0, 1e18, 1e300, 2**62 // 1000, 2**62 // 1000 - 1, 10**17, 10**18, 4340066655830.876, 0.0004]
    ),
    st.decimals(0, 10**13, places=3).map(float),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)
CATEGORIES = ["cpu_op", "kernel", "Memcpy", "python_function", "cuda_runtime", "user_annotation", "ac2g", "Trace"]
USUALLY = {
    "ph": st.sampled_from(["X", "i", "I", "s", "f", "M", "X", "B"]),
    "cat": st.sampled_from(CATEGORIES),
    "name": TEXTS,
    "pid": st.integers(0, 3) | TEXTS,
    "tid": st.integers(0, 3) | TEXTS,
    "ts": NUMBERS,
    "dur": NUMBERS,
    "id": NUMBERS | TEXTS,
}
WORDS = ["correlation", "stream", "device", "bytes", "Sequence number", "Fwd thread id", "Bytes", "Addr", "Device Type",
         "Device Id", "Total Allocated", "Total Reserved", "In msg nelems", "Group size", "blocks per SM",
         "warps per SM", "est. achieved occupancy %"]  # fmt: skip
LISTS = st.lists(st.lists(st.integers(0, 9), max_size=2), max_size=3)
ARGS = {
    **dict.fromkeys(WORDS, st.integers(0, 99) | NUMBERS | TEXTS),
    **dict.fromkeys(["Input Dims", "Input dims"], LISTS | ANYTHING),
    "Input type": st.lists(st.sampled_from(["float", ""]), max_size=3) | ANYTHING,
    **dict.fromkeys(["Call stack", "Module Hierarchy", "Collective name"], TEXTS | ANYTHING),
    **dict.fromkeys(["dtype", "Process Group Name", "name"], TEXTS | ANYTHING),
    "unknown": ANYTHING,
}  # fmt: skip


BYTES = st.binary(max_size=2) | st.sampled_from([b'"', b"\\", b",", b"}", b"0"])


@st.composite
def events(draw):
    """Mostly what Kineto writes; now and then a field of another kind, one too many, or none."""
    event = {name: draw(value) for name, value in USUALLY.items()}
    event["args"] = draw(st.fixed_dictionaries({}, optional=ARGS))
    for name in draw(st.lists(st.sampled_from([*USUALLY, "args", "other"]), max_size=1)):
        event[name] = draw(ANYTHING)
    for name in draw(st.lists(st.sampled_from([*USUALLY, "args"]), max_size=1)):
        event.pop(name, None)
    return {name: event[name] for name in draw(st.permutations(list(event)))}


@compiled
@given(
    happened=st.lists(events(), min_size=1, max_size=12),
    indent=st.sampled_from([None, 0, 3]),
    is_ascii=st.booleans(),
    chunk_bytes=st.sampled_from([150, 1000, 1 << 16]),
    changes=st.lists(st.tuples(st.floats(0, 1), BYTES, st.integers(0, 3)), max_size=2),
)
def test_whatever_stands_there_is_read_alike(place, happened, indent, is_ascii, chunk_bytes, changes):
    text = json.dumps({"traceEvents": happened}, indent=indent, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    for share, bytes_, cut in changes:
        position = int(share * len(text))
        text = text[:position] + bytes_ + text[position + cut :]
    place.write_bytes(text)
    options = ReadOptions(allow_partial=True, skip_bad_rows=True)
    fast, slow = both(place, chunk_bytes=chunk_bytes, options=options)
    assert fast == slow
