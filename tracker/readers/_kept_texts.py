"""What a reader hands over, with no text that is longer than is kept: the one door of all formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from tracker.limits.texts import NAME_CHARACTERS, shorten_name, shorten_text
from tracker.profile import Capture, Events, Profile, Rows, Strings, each_once

_LISTING: Final = frozenset(
    {"input_shapes", "input_types", "input_formats", "call_stack", "group_ranks", "ranks", "shapes"}
)
"""Columns of texts that list many things: each member of a group, each frame of a stack."""


def with_kept_texts(profile: Profile) -> Profile:
    """Return the profile with each text that is too long as its start and a digest; itself where none is."""
    pools = _short_pools(profile.captures)
    captures = tuple(_with_kept_texts(capture, pools) for capture in profile.captures)
    if all(new is old for new, old in zip(captures, profile.captures, strict=True)):
        return profile
    return replace(profile, captures=captures)


def _with_kept_texts(capture: Capture, pools: Mapping[int, Strings]) -> Capture:
    changed: dict[str, Any] = {}
    if len(capture.host) > NAME_CHARACTERS:
        changed["host"] = shorten_name(capture.host)
    for name in ("settings", "facts", "labels", "configuration"):
        texts = getattr(capture, name)
        if any(_is_long(key) or _is_long(value) for key, value in texts.items()):
            changed[name] = {shorten_name(key): shorten_name(value) for key, value in texts.items()}
    if _is_long(capture.device.model):
        changed["device"] = replace(capture.device, model=shorten_name(capture.device.model))
    if capture.events is not None and id(capture.events.strings) in pools:
        changed["events"] = replace(capture.events, strings=pools[id(capture.events.strings)])
    if capture.events is not None and any(map(_is_long, capture.events.threads)):
        events = changed.get("events", capture.events)
        changed["events"] = replace(events, threads=tuple(map(shorten_name, events.threads)))
    if capture.rows is not None and (rows := _rows(capture.rows)) is not capture.rows:
        changed["rows"] = rows
    return replace(capture, **changed) if changed else capture


def _short_pools(captures: Sequence[Capture]) -> dict[int, Strings]:
    """The pools of texts that hold one that is too long -> the pool in its place. The captures of a trace share one."""
    of_pool: dict[int, list[Events]] = {}
    for capture in captures:
        if capture.events is not None:
            of_pool.setdefault(id(capture.events.strings), []).append(capture.events)
    found = {}
    for number, all_events in of_pool.items():
        texts = all_events[0].strings.texts
        long = [code for code, text in enumerate(texts) if len(text) > NAME_CHARACTERS]
        if not long:
            continue
        listing = set().union(*map(_listing_codes, all_events))
        found[number] = pool = Strings()
        # two codes may come to stand for one text: what refers to them keeps its numbers
        pool.texts[:] = texts
        for code in long:
            pool.texts[code] = shorten_text(texts[code]) if code in listing else shorten_name(texts[code])
    return found


def _is_long(text: object) -> bool:
    return isinstance(text, str) and len(text) > NAME_CHARACTERS


def _listing_codes(events: Events) -> set[int]:
    """The codes that stand in columns of texts that list many things."""
    found: set[int] = set()
    for table in (events.ops, events.device, events.collectives, events.extras.process_groups):
        for name in _LISTING.intersection(table.__struct_fields__):
            found.update(each_once(getattr(table, name)).tolist())
    return found


def _rows(rows: Rows) -> Rows:
    tables = dict(rows.tables)
    changed = False
    for name, table in tables.items():
        for column, values in table.items():
            if not isinstance(values, list) or not any(map(_is_long, values)):
                continue
            shorten = shorten_text if column in _LISTING else shorten_name
            tables[name] = {**tables[name], column: [shorten(text) for text in values]}
            changed = True
    return replace(rows, tables=tables) if changed else rows
