"""The bytes of a pack -> profiles, checked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from tracker import readers
from tracker.errors import SourceError
from tracker.profile import (
    CALL_COLUMNS,
    GROUP_COLUMNS,
    ROW_COLUMNS,
    VENDORS_OF_CAPTURES,
    Capture,
    Device,
    Packed,
    Profile,
    Rows,
    Source,
)
from tracker.readers._source import ReadOptions, content_blocks, open_source
from tracker.readers.pack import checks, columns, schema
from tracker.readers.pack.marks import MAGIC, NAME
from tracker.schema.levels import LEVELS
from tracker.units import is_plain

_LATER: Final = {level.name: frozenset(column.name for column in level.columns if column.is_later) for level in LEVELS}
"""Level -> columns that packs of an earlier version lack."""
_FREE_ROWS: Final = 1 << 20
_ROWS_PER_BYTE: Final = 4
_FREE_TEXTS: Final = 1 << 18
_FREE_BYTES: Final = 96 << 20
_CONTENT_PER_BYTE: Final = 200
"""What a pack holds, of any size and per byte on disk. Real ones have a row in 5 to 10 bytes, and content of 10 to 30
times their size.
"""

_FILE_OF_MSPROF: Final = re.compile(r".+\.(?:csv|json)(?:\.gz|\.\d+)?|(?:start|end)_info(?:\.\d+)?", re.IGNORECASE)
"""What packs of captures of msprof have in place of their format, where an early tracker wrote them."""

_AGAIN: Final = "pack the profile again"
_COPY: Final = "copy it again, or pack the profile again"


def packed_in_file(path: Path, options: ReadOptions) -> tuple[Packed, ...]:
    """The profiles in the pack at `path`; see `tracker.readers.pack.read`."""
    with open_source(path) as file:
        return packed_in(file, path, options)


def packed_in(file: BinaryIO, path: Path, options: ReadOptions) -> tuple[Packed, ...]:
    """The profiles in a pack that is open, or at hand as bytes; `path` names it in errors."""
    budget = _Budget(file.seek(0, 2))
    records = _records(file, path, options, budget)
    head = _header(path, next(records, b""))
    profiles = []
    for profile in head.profiles:
        captures = tuple(
            _capture(path, next(records, b""), number + 1, profile, budget) for number in range(profile.captures)
        )
        made = Profile(_format_of(profile), _plain(profile.path), captures, tuple(map(_plain, profile.warnings)))
        profiles.append(Packed(made, profile.said, profile.asked, profile.rules_version))
    if next(records, None) is not None:
        raise SourceError(path, "", "the pack goes on behind its last capture", remedy=_AGAIN)
    return tuple(profiles)


class _Budget:
    """What all captures of a pack may hold together, by its size on disk: real rows differ, and take some bytes each
    however well they are compressed.
    """

    def __init__(self, size_bytes: int) -> None:
        self.record_bytes = min(schema.MAX_RECORD_BYTES, _FREE_BYTES + _CONTENT_PER_BYTE * size_bytes)
        self._rows = _FREE_ROWS + _ROWS_PER_BYTE * size_bytes
        self._texts = _FREE_TEXTS + size_bytes

    def take(self, found: schema.CaptureRecord) -> None:
        """BadColumn where a capture is more than what the captures before it have left."""
        self._texts -= len(found.texts.sizes) // 4
        tables = [*found.tables.values(), found.breakdowns, found.collective_calls, found.groups]
        # a text takes 4 bytes, any number 8
        self._rows -= sum(max(map(len, table.values()), default=0) // 8 for table in tables)
        if self._texts < 0 or self._rows < 0:
            what = "texts" if self._texts < 0 else "rows"
            raise columns.BadColumn(f"the captures hold more {what} than a pack of this size can")


def capture_in(record: bytes | bytearray, budget: _Budget | None = None) -> Capture:
    """The capture in a record; a BadColumn or msgspec's own error where it is none."""
    found = msgspec.msgpack.decode(record, type=schema.CaptureRecord)
    if budget is not None:
        budget.take(found)
    pool = columns.unpacked_texts(found.texts)
    capture = _with_rows(found, _rows(found, pool))
    checks.check_capture(capture)
    return capture


def _header(path: Path, record: bytes | bytearray) -> schema.Header:
    try:
        version = msgspec.msgpack.decode(record, type=schema.Version)
        if version.schema != schema.SCHEMA:
            writer = ascii(version.tracker)[1:-1][:40]
            problem = f"tracker {writer} wrote it with schema {version.schema}, this one knows {schema.SCHEMA}"
            remedy = "upgrade tracker here" if version.schema > schema.SCHEMA else _AGAIN
            raise SourceError(path, "header", problem, remedy=remedy)
        head = msgspec.msgpack.decode(record, type=schema.Header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(path, "header", f"damaged ({error})", remedy=_COPY) from error
    for profile in head.profiles:
        if _format_of(profile) not in readers.NAMES or profile.format == NAME:
            problem = f"packed from the format {ascii(profile.format)[:40]}, which this tracker does not know"
            raise SourceError(path, "header", problem, remedy="upgrade tracker here")
    return head


def _format_of(profile: schema.ProfileHead) -> str:
    return "cann" if _FILE_OF_MSPROF.fullmatch(profile.format) else profile.format


def _plain(text: str) -> str:
    """What is printed as it is, without characters that a terminal acts on."""
    return text if is_plain(text) else "".join(c if is_plain(c) else c.encode("unicode_escape").decode() for c in text)


def _capture(
    path: Path, record: bytes | bytearray, number: int, profile: schema.ProfileHead, budget: _Budget
) -> Capture:
    try:
        return capture_in(record, budget)
    except (columns.BadColumn, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        place = f"capture {number} of {ascii(profile.path)[1:-1][-80:]}"
        raise SourceError(path, place, f"damaged ({error})", remedy=_COPY) from error


def _rows(found: schema.CaptureRecord, pool: list[str]) -> Rows:
    if found.tables.keys() != ROW_COLUMNS.keys():
        raise columns.BadColumn("has not the tables of a capture")
    tables = {}
    for name, kinds in ROW_COLUMNS.items():
        try:
            table = columns.unpacked_table(kinds, found.tables[name], pool, _LATER.get(name, ()))
            tables[name] = columns.with_missing_columns(kinds, table)
        except columns.BadColumn as error:
            raise columns.BadColumn(f"table {name}: {error}") from error
    calls = found.collective_calls
    collective_calls = columns.unpacked_table(CALL_COLUMNS, calls, pool) if calls else {}
    groups = columns.unpacked_table(GROUP_COLUMNS, found.groups, pool) if found.groups else {}
    checks.check_tables(tables, collective_calls, groups)
    breakdowns = columns.unpacked_table(columns.BREAKDOWNS, found.breakdowns, pool, columns.LATER_BREAKDOWNS)
    checks.check_breakdowns(breakdowns)
    overall, steps = columns.unpacked_breakdowns(breakdowns)
    return Rows(overall, steps, tables, collective_calls, groups)


def _with_rows(found: schema.CaptureRecord, rows: Rows) -> Capture:
    vendor, model = found.device
    if vendor not in VENDORS_OF_CAPTURES:
        raise columns.BadColumn(f"the device is of {ascii(vendor)[:40]}, a vendor that this tracker does not know")
    return Capture(
        rank=found.rank,
        world_size=found.world_size,
        host=found.host,
        device=Device(vendor, model),
        device_ordinal=found.device_ordinal,
        started_at_ns=found.started_at_ns,
        ended_at_ns=found.ended_at_ns,
        sources=tuple(Source(source.path, source.size_bytes, source.digest) for source in found.sources),
        settings=found.settings,
        facts=found.facts,
        quality=found.quality,
        quality_reason=found.quality_reason,
        parallel=found.parallel,
        labels=found.labels,
        configuration=found.configuration,
        rows=rows,
    )


def _records(file: BinaryIO, path: Path, options: ReadOptions, budget: _Budget) -> Iterator[bytes | bytearray]:
    """The records behind the first line, one at a time, unpacked no further than is asked for."""
    waiting = bytearray()
    wanted, is_first = len(MAGIC), True
    for block in _blocks(file, path, options):
        waiting += block
        while len(waiting) >= wanted:
            if is_first:
                if not waiting.startswith(MAGIC):
                    raise SourceError(path, "byte 0", "is no pack", remedy="tracker pack writes one")
                is_first = False
                del waiting[:wanted]
                wanted = 4
                continue
            size = int.from_bytes(waiting[:4], "big")
            if size > budget.record_bytes:
                raise SourceError(path, "", f"a record of more than {budget.record_bytes >> 20} MiB", remedy=_AGAIN)
            wanted = 4 + size
            if len(waiting) < wanted:
                break
            record, waiting = _parted(waiting, wanted)
            yield record
            wanted = 4
    if waiting or is_first:
        raise SourceError(path, "", "the pack ends early", remedy=_COPY)


def _parted(waiting: bytearray, wanted: int) -> tuple[bytes | bytearray, bytearray]:
    """The record in the first `wanted` bytes, behind its length, and what follows it; the longer one is not copied."""
    if wanted < len(waiting) - wanted:
        record = bytes(memoryview(waiting)[4:wanted])
        del waiting[:wanted]
        return record, waiting
    rest = waiting[wanted:]
    del waiting[wanted:], waiting[:4]
    return waiting, rest


def _blocks(file: BinaryIO, path: Path, options: ReadOptions) -> Iterator[bytes]:
    """The content, block by block; a SourceError where it is cut, or larger than the limit."""
    read, size = 0, file.seek(0, 2)
    file.seek(0)
    try:
        for block in content_blocks(path, file):
            read += len(block)
            if read > options.max_bytes:
                problem = f"the content is larger than the limit of {options.max_bytes} bytes"
                raise SourceError(path, "", problem, remedy="raise limits.max_bytes in the settings")
            if options.progress:
                options.progress(file.tell(), size)
            yield block
    except EOFError as error:
        raise SourceError(path, "", "the pack ends early", remedy=_COPY) from error
