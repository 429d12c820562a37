"""The committed captures of CANN: of CANN 8, and of a version before it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.readers.helpers import texts
from tracker import readers
from tracker.readers import Found, ReadOptions

DATA = Path(__file__).parents[2] / "data" / "cann"
NEW = DATA / "PROF_000001_20231114221320000_AAAA"
OLD = DATA / "PROF_000001_20230818142704322_BBBB"
OUTPUT = "mindstudio_profiler_output"
TIME = "20231114221400"
T = 1_700_000_000_000_000_000
# the clock of the machine stood at 56,000 s at 1692340024 s of UTC; the first iteration starts one second later
OLD_T = 1_692_340_025_000_000_000


def us(*times, start=T):
    return [start + round(time * 1000) for time in times]


def profile(path=NEW, **options):
    return readers.read(Found(path, readers.claim(path)), ReadOptions(**options))


def capture(path=NEW):
    return profile(path).captures[0]


def add_arrow(file, begins, ends):
    """Write an arrow HostToDevice into a timeline. begins, ends: process, lane and time of each end, in us."""
    same = {"name": "HostToDevice9", "cat": "HostToDevice", "id": "9"}
    pairs = (("s", begins), ("f", ends))
    arrow = [{**same, "ph": phase, "pid": pid, "tid": lane, "ts": time} for phase, (pid, lane, time) in pairs]
    file.write_text(json.dumps([*json.loads(file.read_text()), *arrow]))


def measured(events):
    metrics = events.extras.kernel_metrics
    columns = (metrics.event.tolist(), texts(events, metrics.metric), metrics.value.tolist())
    return sorted(zip(*columns, strict=True))


def counted(events, source):
    rows = events.extras.counters
    columns = (rows.step.tolist(), texts(events, rows.name), texts(events, rows.attribute), rows.value.tolist())
    sources = texts(events, rows.source)
    return [row for row, of in zip(zip(*columns, strict=True), sources, strict=True) if of == source]
