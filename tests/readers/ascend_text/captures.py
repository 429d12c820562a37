"""The committed captures of torch_npu and MindSpore, read and edited."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.readers.helpers import texts
from tracker import readers
from tracker.errors import SourceError
from tracker.readers import Found, ReadOptions

DATA = Path(__file__).parents[2] / "data" / "ascend_text"
PT = DATA / "worker-1_4711_20250109073443012_ascend_pt"
MS = DATA / "rank1_start2_stop5"
T = 1700000000000000000


def us(*times):
    return [T + round(time * 1000) for time in times]


def profile(path=PT, **options):
    return readers.read(Found(path, readers.claim(path)), ReadOptions(**options))


def capture(path=PT, **options):
    return profile(path, **options).captures[0]


def edited(folder, name, old, new):
    file = folder / "ASCEND_PROFILER_OUTPUT" / name
    text = file.read_bytes().decode()
    assert old in text
    file.write_bytes(text.replace(old, new).encode())
    return folder


def links(events):
    said = events.extras.collective_links
    columns = (said.source, said.target, said.packet_bytes, said.packets, said.bytes, said.transit_ns)
    return list(zip(texts(events, said.transport), *(column.tolist() for column in columns), strict=True))


def counters(events):
    rows = events.extras.counters
    said = zip(texts(events, rows.source), texts(events, rows.name), texts(events, rows.attribute), strict=True)
    return {key: (value, step) for key, value, step in zip(said, rows.value.tolist(), rows.step.tolist(), strict=True)}


def without_trace(folder):
    (folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").unlink()
    return folder


def error_of(path, **options):
    with pytest.raises(SourceError) as caught:
        readers.load("ascend_text").read(path, ReadOptions(**options))
    return str(caught.value)
