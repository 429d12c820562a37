"""How runs were recorded, and what other settings of a profiler change: the one authority on what is comparable.

Two recordings of one program differ where the profiler did: with shapes an operator has several keys, with Python
stacks every host time is longer, without step markers a number is per capture instead of per step. None of this is the
program. ASPECTS declares per setting which measures it disturbs and why; all else asks here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct

from tracker.columns import Flags
from tracker.profile import (
    AS_WINDOWS,
    CHECK_SETTING,
    IDLE_SETTING,
    INCOMPLETE_SETTING,
    MARKERS_SETTING,
    READ_AS_GUESS,
    READ_AS_SETTING,
    STEP_RULES,
    STEP_SETTING,
    Incomplete,
)
from tracker.schema.series import (
    ALLOCATIONS,
    API_NAMES,
    DEVICE_OWN_TIME,
    HOST_TIME,
    KIND,
    LOST_DEVICE,
    MODULE_NAMES,
    NAMES,
    NO_DEVICE_DATA,
    RATE,
    RUN,
    SHAPES_IN_KEY,
    STEP_BOUNDS,
    STEP_KEY,
    WHY_IDLE,
    SeriesKey,
    find_metric,
)

_OFF: Final = "off"
_ON: Final = "on"

_EVERYTHING: Final = frozenset(
    {SHAPES_IN_KEY, HOST_TIME, NAMES, API_NAMES, MODULE_NAMES, ALLOCATIONS, RATE, STEP_BOUNDS, WHY_IDLE}
)

HOST_MARKERS: Final = "markers of the host"
DEVICE_WINDOWS: Final = "windows of the device"
EARLIER_IDLE_RULES: Final = "0"
"""Those of a capture that states none (IDLE_SETTING)."""

_SHAPED: Final = 0.1
"""Share of the operators of a run that have shapes where shapes were recorded: half to nearly all of them."""


class Aspect(Struct, frozen=True):
    """One way in which recordings differ. `field`: of a Recording; `words`: what it is called, with `remedy` how to
    record both sides alike. `disturbs`: what is no longer comparable (words of `schema.series`), and `reason` why.
    """

    field: str
    words: str
    disturbs: frozenset[str]
    reason: str
    remedy: str


ASPECTS: Final = (
    Aspect(
        "reader", "source format", _EVERYTHING,
        "two profilers or export formats name and time the same work differently",
        "record both with one profiler and export type",
    ),
    Aspect(
        "timeline", "device activity", _EVERYTHING,
        "without device activity the host timeline stands in for the device",
        "record both with the device activity (ProfilerActivity.CUDA, NPU)",
    ),
    Aspect(
        "steps", "step markers", _EVERYTHING,
        "without step markers a number is per capture instead of per step, or per what was found to be one",
        "call prof.step() after each step (schedule) in both, or mark steps by NVTX ranges",
    ),
    Aspect(
        "windows", "step definition", frozenset({STEP_BOUNDS}),
        "a step was what the host marked, and is now when the device works on it",
        "ingest the older runs again (tracker ingest --again)",
    ),
    Aspect(
        "level", "profiler level", _EVERYTHING,
        "another level records other kernels and costs other time",
        "record both with one profiler_level",
    ),
    Aspect(
        "schema", "trace schema", frozenset({NAMES, API_NAMES, MODULE_NAMES, ALLOCATIONS}),
        "another trace schema names operators and kernels differently",
        "record both with one profiler version",
    ),
    Aspect(
        "rules", "naming rules", frozenset({NAMES, MODULE_NAMES}),
        "another version of the naming rules names kernels and categories differently",
        "ingest the older runs again",
    ),
    Aspect(
        "shapes", "record_shapes", frozenset({SHAPES_IN_KEY, HOST_TIME}),
        "operators have one key per input shape on one side only, and recording shapes makes host times longer",
        "record both with record_shapes=True",
    ),
    Aspect(
        "stack", "with_stack", frozenset({HOST_TIME}),
        "recording Python stacks makes host times longer",
        "record both with the same with_stack",
    ),
    Aspect(
        "memory", "profile_memory", frozenset({ALLOCATIONS, HOST_TIME}),
        "recording allocations makes host times longer",
        "record both with profile_memory=True",
    ),
    Aspect(
        "modules", "modules", frozenset({MODULE_NAMES}),
        "only one side says which module an operator belongs to",
        "record both with modules (with_stack=True and with_modules=True, or NVTX ranges)",
    ),
    Aspect(
        "idle_rules", "rules on idle time and loaders", frozenset({WHY_IDLE}),
        "an earlier tracker, or one with other [readers] loaders, names other causes of the same time",
        "ingest the older runs again (tracker ingest --again)",
    ),
)  # fmt: skip
"""Which setting disturbs which measures: the declaration that diff, history, findings and gates share."""


class Recording(Struct, frozen=True, order=True):
    """How a run was recorded, a word per aspect; "" where neither the source nor its rows say.

    A setting that a source does not state is off: profilers write down what is switched on.
    """

    reader: str = ""
    timeline: str = ""
    steps: str = ""
    windows: str = HOST_MARKERS
    level: str = ""
    schema: str = ""
    rules: str = ""
    shapes: str = _OFF
    stack: str = _OFF
    memory: str = _OFF
    modules: str = _OFF
    idle_rules: str = EARLIER_IDLE_RULES
    incomplete: Incomplete = Incomplete()
    has_markers_as_windows: bool = False

    def lacks(self, key: SeriesKey) -> bool:
        """Return whether records were lost, or times are impossible, on which this series rests."""
        records = records_of(key.kind, key.metric)
        if key == STEP_KEY and self.incomplete.has_markers:
            records -= {LOST_DEVICE}
        is_device_work = key.kind != RUN and LOST_DEVICE in records
        if is_device_work and key.name in self.incomplete.names:
            return True
        return not records.isdisjoint(self.incomplete.forbids)

    def sign(self, rests_on: frozenset[str]) -> tuple[str, ...]:
        """Return what must be equal for a measure that rests on these words to be comparable."""
        return tuple(getattr(self, one.field) for one in ASPECTS if one.disturbs & rests_on)


def recording_of(
    said: Mapping[str, Iterable[str]],
    settings: Iterable[Mapping[str, str]],
    *,
    has_shapes: bool | None = None,
    has_memory: bool = False,
    has_modules: bool = False,
) -> Recording:
    """Return a run's recording. `said`: format, timeline, steps, schema and rules as its captures say them, several
    words each; `settings`: of its captures. `has_shapes`: whether the key of any of its operators has shapes, None
    without operators; where the settings state shapes, they count as recorded all the same. `has_memory`,
    `has_modules`: whether there are rows of them.
    """
    chosen = list(settings)

    def text(key: str) -> str:
        return " | ".join(sorted({*said.get(key, ())} - {""}))

    def switch(name: str, *, seen: bool = False) -> str:
        return _ON if seen or any(_is_on(one.get(name, "")) for one in chosen) else _OFF

    levels = {
        " ".join(filter(None, (one.get("profiler_level", ""), one.get("cuda_graph_trace", "")))) for one in chosen
    }
    # without a profiler's trace each number is per step, whatever there was to mark
    steps = "" if any(one.get("profiler") in ("off", "summary") for one in chosen) else text("steps")
    found_by = sorted({one["steps_found_by"] for one in chosen if one.get("steps_found_by")})
    steps = f"found by {', '.join(found_by)}" if found_by else steps
    # a CUDA graph replaces operators: what is left of them may have no shapes although they were recorded
    shapes = _ON if has_shapes else switch("record_shapes")
    windows = DEVICE_WINDOWS if any(one.get(STEP_SETTING) == STEP_RULES for one in chosen) else HOST_MARKERS
    forbids: set[str] = set()
    names: set[str] = set()
    # every rank that lost work of the device must have markers
    has_markers = False
    without_markers = False
    for incomplete in map(incomplete_of, chosen):
        if incomplete is not None:
            forbids |= set(incomplete.forbids)
            names |= set(incomplete.names)
            has_markers |= incomplete.has_markers
            without_markers |= LOST_DEVICE in incomplete.forbids and not incomplete.has_markers
    content = Incomplete(tuple(sorted(forbids)), tuple(sorted(names)), has_markers and not without_markers)
    as_windows = bool(chosen) and all(one.get(MARKERS_SETTING) == AS_WINDOWS for one in chosen)
    idle_rules = sorted({rules for one in chosen if (rules := find_idle_rules(one)) is not None})
    return Recording(
        text("format"), text("timeline"), steps, windows, " | ".join(sorted(levels - {""})), text("schema"),
        text("rules"), shapes, switch("with_stack"), switch("profile_memory", seen=has_memory),
        _ON if has_modules else _OFF, " | ".join(idle_rules) or EARLIER_IDLE_RULES, content, as_windows,
    )  # fmt: skip


def find_idle_rules(settings: Mapping[str, str]) -> str | None:
    """Return the rules by which a capture was told why its device idles, and what its data loading is; None of one that
    was made of sums, which explain nothing. settings: of the capture.
    """
    is_explained = any(name in settings for name in (IDLE_SETTING, CHECK_SETTING, STEP_SETTING))
    return settings.get(IDLE_SETTING, EARLIER_IDLE_RULES) if is_explained else None


def incomplete_of(settings: Mapping[str, str]) -> Incomplete | None:
    """Return what may not be judged of a capture, by its settings; None where no check found anything."""
    content = settings.get(INCOMPLETE_SETTING)
    return None if content is None else msgspec.json.decode(content, type=Incomplete)


def is_guess(settings: Mapping[str, str]) -> bool:
    """Return whether the times of a capture are a guess, from a log that no grammar fits: only a user who names the
    format confirms them.
    """
    return settings.get(READ_AS_SETTING) == READ_AS_GUESS


def are_guesses(settings: Iterable[str | None]) -> bool:
    """Return whether the times of all captures are a guess. settings: of each, as JSON."""
    found = [is_guess(json.loads(text or "{}")) for text in settings]
    return bool(found) and all(found)


def has_no_device_data(settings: str) -> bool:
    """Return whether a capture is of a device of which its source has no event. settings: of the capture, as JSON."""
    incomplete = incomplete_of(json.loads(settings or "{}"))
    return incomplete is not None and NO_DEVICE_DATA in incomplete.forbids


def _is_on(value: str) -> bool:
    return value.lower() not in ("", _OFF, "0", "false", "none")


def rests_on(kind: str, metric: str, timeline: str) -> frozenset[str]:
    """Return what a series of this kind and metric rests on, recorded on this timeline (`device`, `host`).

    >>> sorted(rests_on("op", "device_self_ns", "device")), sorted(rests_on("kernel", "total_ns", "device"))
    (['keys with input shapes', 'names of operators and kernels'], ['names of operators and kernels'])
    >>> sorted(rests_on("run", "compute_ns", "device"))
    ['numbers of the whole run', 'when a step begins and ends']
    >>> sorted(rests_on("run", "e2e_ns", "device"))
    ['numbers of the whole run', 'times of the host']
    """
    of_key = KIND[kind].rests_on if kind in KIND else frozenset()
    words = of_key | find_metric(kind, metric).rests_on
    is_size = metric.endswith("bytes")
    if timeline != "device" and metric != DEVICE_OWN_TIME.name and not is_size:
        # without device activity the host timeline stands in for the device
        words |= {HOST_TIME}
    return words


def records_of(kind: str, metric: str) -> frozenset[str]:
    """Return which records of a capture a series rests on: words of `Incomplete.forbids`.

    >>> sorted(records_of("kernel", "total_ns")), sorted(records_of("run", "duration_ns"))
    (['work of the device'], ['steps and their parts', 'times of the host', 'work of the device'])
    """
    return find_metric(kind, metric).records


class Difference(Struct, frozen=True):
    """An aspect in which no recording of one side is like one of the other, and what each says."""

    aspect: Aspect
    baseline: str
    candidate: str

    @property
    def sentence(self) -> str:
        """`record_shapes on -> off (...)`."""
        one = self.aspect
        return f"{one.words} {self.baseline or 'none'} -> {self.candidate or 'none'} ({one.reason})"


def alike(keys: Sequence[SeriesKey], recordings: Sequence[Recording], last: int) -> Flags | None:
    """Return (series, runs): whether each run was recorded like the run at `last`, in all that the series rests on;
    None where all are alike.
    """
    distinct = set(recordings)
    if len(distinct) < 2:
        return None
    of_last = recordings[last]
    runs_alike = {}
    # series of one kind and metric rest on the same
    for kind, metric in {(key[0], key[1]) for key in keys}:
        measure = rests_on(kind, metric, of_last.timeline)
        is_alike = {recording: recording.sign(measure) == of_last.sign(measure) for recording in distinct}
        runs_alike[kind, metric] = np.array([is_alike[recording] for recording in recordings], dtype=bool)
    rows = [runs_alike[key[0], key[1]] for key in keys]
    return np.array(rows, dtype=bool).reshape(len(keys), len(recordings))


def incomplete_cells(keys: Sequence[SeriesKey], recordings: Sequence[Recording], last: int) -> Flags | None:
    """Return (series, runs): whether the records of a run that a series rests on are incomplete, or may not be compared
    with those of the run at `last`; None for nowhere.
    """
    if all(recording.incomplete == Incomplete() for recording in recordings):
        return None
    column_of_recording = {recording: [recording.lacks(key) for key in keys] for recording in set(recordings)}
    columns = [column_of_recording[recording] for recording in recordings]
    found = np.array(columns, dtype=bool).reshape(len(recordings), len(keys)).T
    if STEP_KEY in keys:
        found[keys.index(STEP_KEY)] |= _have_other_steps(recordings, recordings[last])
    return found


def _have_other_steps(recordings: Sequence[Recording], last: Recording) -> Flags:
    """Return which runs have steps that say nothing of those of `last`: markers are compared with markers, and with
    windows that are as long as these.
    """
    has_markers = np.array([recording.incomplete.has_markers for recording in recordings], dtype=bool)
    if not last.incomplete.has_markers:
        return np.asarray(has_markers)
    as_windows = np.array([recording.has_markers_as_windows for recording in recordings], dtype=bool)
    return np.asarray(~has_markers & ~as_windows)


def has_shapes(shaped: int, ops: int) -> bool | None:
    """Return whether operators were recorded with shapes, by how many of them have any; None without operators.

    A few with shapes among many without, such as collectives that carry their sizes, are none.
    """
    return shaped >= ops * _SHAPED if ops else None


def differences(baseline: Iterable[Recording], candidate: Iterable[Recording]) -> tuple[Difference, ...]:
    """Return the aspects in which the two sides share no recording, in the order of ASPECTS."""
    baseline, candidate = list(baseline), list(candidate)
    differing: list[Difference] = []
    for aspect in ASPECTS:
        before = {getattr(recording, aspect.field) for recording in baseline}
        after = {getattr(recording, aspect.field) for recording in candidate}
        # two profilers, or one without a device, explain idle time otherwise by themselves
        is_said = aspect.disturbs == {WHY_IDLE} and bool(disturbing(differing, aspect.disturbs))
        if before and after and not before & after and not is_said:
            differing.append(Difference(aspect, " | ".join(sorted(before)), " | ".join(sorted(after))))
    return tuple(differing)


def disturbing(differing: Iterable[Difference], measure: frozenset[str]) -> tuple[Difference, ...]:
    """Return those of the differences that make this measure incomparable."""
    return tuple(difference for difference in differing if difference.aspect.disturbs & measure)


def remedies(differing: Sequence[Difference]) -> str:
    """Return how to record both sides alike, as one sentence; "" for nothing."""
    text = "; ".join(dict.fromkeys(difference.aspect.remedy for difference in differing))
    return f"{text[:1].upper()}{text[1:]} to compare them." if text else ""
