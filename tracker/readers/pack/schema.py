"""The records of a pack, as MessagePack. They hold the columns of `tracker.profile`."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

SCHEMA: Final = 1
"""Grows with every change of the records from the first release on."""

MAX_TEXT_BYTES: Final = 16 << 20
"""Largest size of one text, such as the name of a kernel."""

MAX_RECORD_BYTES: Final = 1 << 29
"""Largest size of one record: the rows of one rank. Those of a 2 GB trace have some MB."""

_MAX_LIST: Final = 1 << 16
_LARGEST: Final = (1 << 62) - 1

Text = Annotated[str, Meta(max_length=1 << 16)]
Count = Annotated[int, Meta(ge=0, le=_LARGEST)]
Rank = Annotated[int, Meta(ge=0, lt=1 << 31)]
Time = Annotated[int, Meta(ge=-_LARGEST, le=_LARGEST)]
Pairs = Annotated[dict[Text, Text], Meta(max_length=_MAX_LIST)]
Said = Annotated[bytes, Meta(max_length=1 << 20)]


class ProfileHead(Struct, frozen=True, forbid_unknown_fields=True):
    """One profile: the reader's name, the path it was read from, how many captures it holds, what its reader warned of.

    `said`: the content of its sidecar, `asked`: the options of `tracker pack` in the same form, as JSON; empty: none.
    `rules_version`: of the naming and category rules that its rows were made with.
    """

    format: Text
    path: Text
    captures: Annotated[int, Meta(ge=1, le=_MAX_LIST)]
    warnings: Annotated[list[Text], Meta(max_length=_MAX_LIST)]
    said: Said
    asked: Said
    rules_version: Annotated[int, Meta(ge=0, lt=1 << 31)]


class Version(Struct, frozen=True):
    """What every header of whatever schema starts with. `tracker`: the version that wrote the pack."""

    schema: int
    tracker: Text


class Header(Version, frozen=True, forbid_unknown_fields=True):
    """The first record of a pack."""

    profiles: Annotated[list[ProfileHead], Meta(min_length=1, max_length=_MAX_LIST)]


class SourceRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """See `tracker.profile.Source`."""

    path: Text
    size_bytes: Count
    digest: Annotated[bytes, Meta(min_length=16, max_length=16)]


class TextPool(Struct, frozen=True, forbid_unknown_fields=True):
    """The distinct texts of the columns of a capture, end to end in UTF-8, and their sizes in bytes (uint32)."""

    content: bytes
    sizes: bytes


class CaptureRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """See `tracker.profile.Capture`. Columns are bytes, as `columns` says.

    `device`: vendor and model. `breakdowns`: the columns of a step and its breakdown, the whole capture in front, as
    step -1. `tables`: those of ROW_COLUMNS; `collective_calls` and `groups`: as in `Rows`, or
    empty.
    """

    rank: Rank | None
    world_size: Annotated[int, Meta(ge=1, lt=1 << 31)] | None
    host: Text
    device: tuple[Text, Text]
    device_ordinal: Rank | None
    started_at_ns: Time | None
    ended_at_ns: Time | None
    sources: Annotated[list[SourceRecord], Meta(min_length=1, max_length=_MAX_LIST)]
    settings: Pairs
    facts: Pairs
    quality: Text
    quality_reason: Text
    parallel: Annotated[dict[Text, Rank], Meta(max_length=16)]
    labels: Pairs
    configuration: Pairs
    texts: TextPool
    breakdowns: dict[str, bytes]
    tables: dict[str, dict[str, bytes]]
    collective_calls: dict[str, bytes]
    groups: dict[str, bytes]
