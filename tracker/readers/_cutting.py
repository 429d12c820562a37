"""The events of one span of time out of a trace in Chrome's format, as they stand in the file.

Nothing that stands beside the list of events is looked at: it can hold access tokens. Neither does an event that names
a process or a thread keep more than that name and its place.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Raw, Struct, ValidationError
from msgspec.json import Decoder, encode

from tracker.readers._cut_span import Span
from tracker.readers._event_texts import EventTexts
from tracker.readers._source import SourceText
from tracker.readers._times import text_to_ns
from tracker.readers._trace_event import NOTHING, TraceEvent
from tracker.units import NS_PER_US

_NAMING: Final = frozenset(("process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"))
_MARKER: Final = re.compile(r"Profiler?Step#(\d{1,18})(?!\d)")


class _Event(TraceEvent, gc=False):
    ts: int | float | str | None = None
    dur: int | float | str | None = None
    id: int | float | str | None = None


class _Times(Struct, gc=False):
    ts: Raw = NOTHING
    dur: Raw = NOTHING


class _Name(Struct, gc=False, omit_defaults=True):
    name: int | float | str | None = None
    labels: int | float | str | None = None
    sort_index: int | float | str | None = None


class _Naming(TraceEvent, gc=False, omit_defaults=True):
    args: _Name | None = None


_RAWS: Final = Decoder(list[Raw])
_EVENTS: Final = Decoder(list[_Event])
_TIMES: Final = Decoder(_Times)
_NAMINGS: Final = Decoder(_Naming)


def events_of(text: SourceText, span: Span) -> Iterator[bytes]:
    """The JSON text of each event that lies in `span` or overlaps it, and of those that name processes and threads;
    of an arrow both ends or neither. A SourceError where the text is no trace.
    """
    arrows: dict[tuple[object, object], dict[str, list[bytes]] | None] = {}  # None: both ends were met
    also_us = np.array(span.also_ns, dtype=np.float64) / NS_PER_US
    chunks = EventTexts(text, _decoded, exporter="its profiler", allow_partial=True, may_stay_open=True)
    for chunk in chunks:
        raws, events = chunk.events
        for place in _near(events, span, also_us):
            event, raw = events[place], bytes(raws[place])
            if event.ph == "M":
                with suppress(ValidationError):
                    if event.name in _NAMING:
                        yield encode(_NAMINGS.decode(raw))
            elif _is_in(event, raw, span):
                arrow = event.cat, event.id
                if event.ph not in ("s", "t", "f") or (ends := arrows.setdefault(arrow, {})) is None:
                    yield raw
                    continue
                ends.setdefault(event.ph, []).append(raw)
                if "s" in ends and "f" in ends:
                    yield from chain.from_iterable(ends.values())
                    arrows[arrow] = None


def _decoded(text: bytes) -> tuple[list[Raw], list[_Event]]:
    return _RAWS.decode(text), _EVENTS.decode(text)


def _near(events: Sequence[_Event], span: Span, also_us: npt.NDArray[np.float64]) -> list[int]:
    """The places of the events that may be in `span`, to 1 us, and of those that may be names."""
    start = np.array([_number(event.ts) for event in events])
    end = start + np.array([0.0 if event.dur is None else _number(event.dur) for event in events])
    slack = 1.0 + span.slack_ns / NS_PER_US
    found = (start < span.end_ns / NS_PER_US + 1.0) & (end > span.start_ns / NS_PER_US - slack)
    if len(also_us):
        after = np.searchsorted(also_us, start)
        for place in (np.minimum(after, len(also_us) - 1), np.maximum(after, 1) - 1):
            found |= np.abs(also_us[place] - start) <= slack
    found |= np.array([event.ph == "M" for event in events], dtype=bool)
    places: list[int] = np.flatnonzero(found).tolist()
    return places


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _is_in(event: _Event, raw: bytes, span: Span) -> bool:
    """Whether an event is in `span`, to the ns: a double does not hold the time of every trace."""
    marker = _MARKER.match(event.name or "") if span.step is not None else None
    if marker is not None and int(marker[1]) != span.step:
        return False
    times = _TIMES.decode(raw)
    try:
        start = text_to_ns(bytes(times.ts))
        end = start + (0 if event.dur is None else text_to_ns(bytes(times.dur))) + span.slack_ns
    except ValueError:
        return False
    if start < span.end_ns and (end > span.start_ns or start >= span.start_ns):
        return True
    place = bisect_left(span.also_ns, start)
    # the end of an arrow is up to 1 ns away from the kernel that it leads to
    return any(abs(other - start) <= max(1, span.slack_ns) for other in span.also_ns[max(0, place - 1) : place + 1])
