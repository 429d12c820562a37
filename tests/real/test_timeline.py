"""A second, slow and obvious implementation of the breakdown and of self times, straight from the JSON of each trace.

It shares nothing with the readers or the timeline: plain loops over dicts, and times as exact integers from Decimal.
"""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.real import data
from tracker import readers, timeline
from tracker.profile import MISSING, NO_STEP, Rows
from tracker.readers import ReadOptions

OPS = {"cpu_op", "operator", "user_annotation"}
CALLS = {"cuda_runtime", "cuda_driver", "runtime"}
KERNELS, COPIES = {"kernel"}, {"gpu_memcpy", "gpu_memset", "memcpy", "memset"}
COLLECTIVES = ("nccl:", "gloo:")
HANDS_OVER = ("c10d::", "record_param_comms", *COLLECTIVES)
Event = dict[str, Any]


def traces() -> list[str]:
    return data.some(path for kind in ("pytorch", "torch_cpu") for path in data.folder().glob(f"{kind}/**/*.json.gz"))


def ns(value: Any) -> int:
    return int(Decimal(value) * 1000)


def load(path: Path) -> list[Event]:
    """Complete events with `start`, `end` in ns and a lower-case category; step markers of the device are left out."""
    parsed = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    events = parsed if isinstance(parsed, list) else parsed["traceEvents"]
    kept = []
    for event in events:
        event["cat"] = str(event.get("cat")).lower()
        is_memory = event.get("name") == "[memory]"
        if event.get("ph") == "X" or is_memory:
            event["start"] = ns(event["ts"])
            event["end"] = event["start"] + ns(event.get("dur", 0))
            kept.append(event)
    return kept


def built(path: Path) -> Rows:
    (found,) = readers.find(path)
    (capture,) = readers.read(found, ReadOptions()).captures
    rows = timeline.build(capture).rows
    assert rows is not None
    return rows


@dataclass(frozen=True)
class Trace:
    """The events of one file as they stand in it, and the rows that the tracker makes of it."""

    events: list[Event]
    rows: Rows


@pytest.fixture(scope="module", params=traces())
def trace(request: pytest.FixtureRequest) -> Trace:
    path = data.path(request.param)
    return Trace(load(path), built(path))


def markers(events: list[Event]) -> list[Event]:
    return [e for e in events if e["cat"] in OPS and e["name"].startswith("ProfilerStep#")]


def host_ops(events: list[Event]) -> list[Event]:
    return [e for e in events if e["cat"] in OPS and not e["name"].startswith("ProfilerStep#")]


def device_events(events: list[Event]) -> list[Event]:
    return [e for e in events if e["cat"] in KERNELS | COPIES]


def step_at(marked: list[Event], time: int) -> int:
    inside = [e for e in marked if e["start"] <= time < e["end"]]
    return int(inside[-1]["name"].split("#")[1]) if inside else NO_STEP if marked else 0


def parents(spans: list[Event]) -> list[int]:
    """The exact stack rule, per (process, thread)."""
    order = sorted(range(len(spans)), key=lambda i: (str(spans[i]["pid"]), str(spans[i]["tid"]), spans[i]["start"],
                                                     -spans[i]["end"], i))  # fmt: skip
    found = [-1] * len(spans)
    stack: list[int] = []
    for row in order:
        span = spans[row]
        while stack:
            top = spans[stack[-1]]
            same = (top["pid"], top["tid"]) == (span["pid"], span["tid"])
            if same and top["end"] > span["start"] and top["end"] >= span["end"]:
                break
            stack.pop()
        found[row] = stack[-1] if stack else -1
        stack.append(row)
    return found


def launches(events: list[Event]) -> dict[int, Event]:
    """correlation -> launch; where one occurs twice the later is taken (they agree in all traces at hand)."""
    return {
        int(e["args"]["correlation"]): e for e in events if e["cat"] in CALLS and "correlation" in e.get("args", {})
    }


def linked(events: list[Event]) -> list[tuple[Event, Event | None]]:
    """Each device event with its launch, by correlation; the bare lists of 2020 have none and are linked by arrows."""
    calls = launches(events)
    pairs = []
    for event in device_events(events):
        correlation = event.get("args", {}).get("correlation")
        pairs.append((event, calls.get(int(correlation)) if correlation is not None else None))
    return pairs


def step_of(events: list[Event], pairs: list[tuple[Event, Event | None]]) -> list[int]:
    first: dict[Any, int] = {}
    for event, launch in pairs:
        if launch is not None:
            first[event["tid"]] = min(first.get(event["tid"], event["start"]), event["start"])
    steps = []
    marked = markers(events)
    for event, launch in pairs:
        if launch is not None:
            steps.append(step_at(marked, launch["start"]))
        elif marked and event["tid"] in first and event["start"] < first[event["tid"]]:
            steps.append(NO_STEP)
        else:
            steps.append(step_at(marked, event["start"]))
    return steps


def lengths(spans: list[tuple[int, int, str]]) -> Counter[frozenset[str]]:
    """Time by the set of classes that run at once: a walk over all starts and ends."""
    edges = sorted([(start, 1, name) for start, _, name in spans] + [(end, -1, name) for _, end, name in spans])
    running: Counter[str] = Counter()
    time: Counter[frozenset[str]] = Counter()
    before = 0
    for moment, change, name in edges:
        time[frozenset(+running)] += moment - before
        before = moment
        running[name] += change
    del time[frozenset()]
    return time


def device_class(event: Event) -> str:
    if event["cat"] in COPIES:
        return "copy"
    return "communication" if event["name"].lower().removeprefix("void ").startswith(("nccl", "rccl")) else "compute"


def parts(spans: list[tuple[int, int, str]], whole: int) -> dict[str, int]:
    time = lengths(spans)

    def share(wanted: str, without: frozenset[str] = frozenset()) -> int:
        return sum(length for names, length in time.items() if wanted in names and not names & without)

    return {
        "compute_ns": share("compute"),
        "communication_ns": share("communication"),
        "overlap_ns": share("compute") - share("compute", frozenset(["communication"])),
        "exposed_communication_ns": share("communication", frozenset(["compute"])),
        "copy_ns": share("copy"),
        "exposed_copy_ns": share("copy", frozenset(["compute", "communication"])),
        "idle_ns": whole - sum(time.values()),
    }


def device_span(events: list[Event]) -> int:
    return max(e["end"] for e in events) - min(e["start"] for e in events) if events else 0


def device_parts(events: list[Event], window: tuple[int, int]) -> dict[str, int]:
    """What runs in the window, whoever launched it."""
    spans = []
    for event in events:
        start, end = max(event["start"], window[0]), min(event["end"], window[1])
        if start < end:
            spans.append((start, end, device_class(event)))
    return parts(spans, window[1] - window[0])


def windows(events: list[Event], pairs: list[tuple[Event, Event | None]]) -> dict[str, tuple[int, int]]:
    """Name of a marker -> when its step runs on the device, marker by marker and kernel by kernel."""
    busy: Counter[Any] = Counter()
    first: dict[Any, int] = {}
    for event, launch in pairs:
        if event["cat"] in KERNELS and device_class(event) == "compute":
            busy[event["tid"]] += event["end"] - event["start"]
        if launch is not None:
            first[event["tid"]] = min(first.get(event["tid"], event["start"]), event["start"])
    main = max(busy, key=lambda stream: busy[stream], default=None)

    def launched(event: Event, launch: Event | None) -> float:
        if launch is not None:
            return launch["start"]
        return event["start"] if event["start"] >= first.get(event["tid"], event["start"]) else float("-inf")

    def finished(moment: int) -> float:
        kernels = [pair for pair in pairs if pair[0]["tid"] == main and pair[0]["cat"] in KERNELS]
        return max((e["end"] for e, launch in kernels if launched(e, launch) < moment), default=float("-inf"))

    marked = sorted(markers(events), key=lambda marker: marker["start"])
    found = {}
    for place, marker in enumerate(marked):
        following = marked[place + 1]["start"] if place + 1 < len(marked) else marker["end"]
        start = max(marker["start"], finished(marker["start"]))
        found[marker["name"]] = (int(start), int(max(marker["end"], finished(following))))
    return found


def host_class(op: Event, names_around: list[str]) -> str:
    if op["name"].startswith(COLLECTIVES):
        return "communication"
    hands_over = op["name"].startswith(HANDS_OVER) or any(name.startswith(COLLECTIVES) for name in names_around)
    return "" if hands_over or op["cat"] == "user_annotation" else "compute"


def host_parts(events: list[Event], window: tuple[int, int]) -> dict[str, int]:
    ops = host_ops(events)
    above = parents(ops)
    calls = [op for op in ops if op["name"].startswith(COLLECTIVES)]
    spans = []
    for row, op in enumerate(ops):
        names_around, around = [], above[row]
        while around >= 0:
            names_around.append(ops[around]["name"])
            around = above[around]
        start, end = max(op["start"], window[0]), min(op["end"], window[1])
        kind = host_class(op, names_around)
        if kind == "communication" and start < end:
            spans.append((start, end, kind))
        elif kind and start < end:
            spans += [(a, b, kind) for a, b in outside_collectives(calls, op, start, end)]
    return parts(spans, window[1] - window[0])


def outside_collectives(calls: list[Event], op: Event, start: int, end: int) -> list[tuple[int, int]]:
    """The pieces of start..end in which the thread of `op` is in no collective."""
    pieces = [(start, end)]
    for other in calls:
        if (other["pid"], other["tid"]) == (op["pid"], op["tid"]):
            cut = [(a, min(b, other["start"])) for a, b in pieces] + [(max(a, other["end"]), b) for a, b in pieces]
            pieces = [(a, b) for a, b in cut if a < b]
    return pieces


def innermost(lane: list[Event], starts: list[int], time: int) -> str:
    """The name of the op of one thread (in order of start, longest first) that contains `time` and starts last."""
    for place in range(bisect_right(starts, time) - 1, -1, -1):
        if lane[place]["end"] > time:
            return str(lane[place]["name"])
    return "(no op)"


def test_breakdown_agrees_with_the_slow_way(trace):
    events, rows = trace.events, trace.rows
    every = [e for e in events if e["cat"] in OPS | CALLS | KERNELS | COPIES or e["name"] == "[memory]"]
    window = min(e["start"] for e in every), max(e["end"] for e in every)
    pairs = linked(events)
    steps = step_of(events, pairs)
    assert rows.overall.duration_ns == window[1] - window[0]
    of_step = windows(events, pairs)
    for step in (None, *(row.step for row in rows.steps)):
        found = rows.overall if step is None else next(row.breakdown for row in rows.steps if row.step == step)
        own = [pair for pair, at in zip(pairs, steps, strict=True) if step in (None, at)]
        launched = [event for event, _ in own]
        span = of_step.get(f"ProfilerStep#{step}", window)
        if not pairs:
            expected = host_parts(events, span)
        elif f"ProfilerStep#{step}" in of_step:
            expected = device_parts([event for event, _ in pairs], span)
        else:
            # the parts of a capture add up to the time from the first to the last work of the device
            ends = min(event["start"] for event in launched), max(event["end"] for event in launched)
            expected = device_parts(launched, ends)
        assert {key: getattr(found, key) for key in expected} == expected
        kernels = [(event, launch) for event, launch in own if event["cat"] in KERNELS]
        assert found.duration_ns == span[1] - span[0]
        assert found.e2e_ns == (device_span(launched) if pairs else span[1] - span[0])
        assert found.kernel_count == len(kernels)
        assert found.kernel_total_ns == sum(event["end"] - event["start"] for event, _ in kernels)
        assert found.unlinked_kernel_total_ns == sum(e["end"] - e["start"] for e, launch in kernels if launch is None)


def test_self_times_agree_with_the_slow_way(trace):
    events, rows = trace.events, trace.rows
    ops = host_ops(events)
    above = parents(ops)
    children: dict[int, list[int]] = defaultdict(list)
    for row, parent in enumerate(above):
        children[parent].append(row)
    expected: Counter[tuple[str, str]] = Counter()
    calls: Counter[str] = Counter()
    for row, op in enumerate(ops):
        inside = sum(lengths([(ops[c]["start"], ops[c]["end"], "child") for c in children[row]]).values())
        expected[op["name"], "host"] += op["end"] - op["start"] - inside
        calls[op["name"]] += 1
    lanes: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for op in ops:
        lanes[str(op["pid"]), str(op["tid"])].append(op)
    for lane in lanes.values():
        lane.sort(key=lambda op: (op["start"], -op["end"]))
    starts = {thread: [op["start"] for op in lane] for thread, lane in lanes.items()}
    around: dict[int, str] = {}
    for event, launch in linked(events):
        if launch is not None and id(launch) not in around:
            thread = str(launch["pid"]), str(launch["tid"])
            around[id(launch)] = innermost(lanes[thread], starts.get(thread, []), launch["start"])
        key = "(unlinked)" if launch is None else around[id(launch)]
        expected[key, "device"] += event["end"] - event["start"]
    found: Counter[tuple[str, str]] = Counter()
    found_calls: Counter[str] = Counter()
    names, table = rows.tables["op_key"]["name"], rows.tables["op"]
    columns = ("op_key", "raw_name", "host_self_ns", "device_self_ns", "calls")
    for key, raw_name, host, device, count in zip(*(list(table[column]) for column in columns), strict=True):
        # no two names of these captures have one key
        name = raw_name or names[key]
        found[name, "host"] += 0 if host == MISSING else int(host)
        found[name, "device"] += int(device)
        found_calls[name] += int(count)
    assert +found == +expected
    assert +found_calls == +calls


def test_device_time_is_conserved_in_every_table(trace):
    rows = trace.rows
    kernels, overall = rows.tables["kernel"], rows.overall
    every = overall.compute_total_ns + overall.communication_total_ns + overall.copy_total_ns
    assert sum(kernels["total_ns"]) == sum(rows.tables["op"]["device_self_ns"]) == every
    assert sum(rows.tables["op_tree"]["device_self_ns"]) == every
    plain = sum(
        ns for ns, kind in zip(kernels["total_ns"], kernels["category"], strict=True) if kind not in ("copy", "memset")
    )
    assert plain == overall.kernel_total_ns


def test_little_compute_stays_unnamed(trace):
    kernels = trace.rows.tables["kernel"]
    time: Counter[str] = Counter()
    for category, total in zip(kernels["category"], kernels["total_ns"].tolist(), strict=True):
        time[category] += total
    compute = sum(total for kind, total in time.items() if kind not in ("communication", "copy", "memset"))
    assert time["other"] <= 0.02 * compute
