"""TensorBoard event files: records of protocol buffers, each with two check sums.

A record is its length (8 bytes), the masked CRC-32C of these, the data, and their masked CRC-32C. The data are an
`Event`: wall time (1), step (2), and a summary (5) of values (1), each with a tag (1) and a number (2), or since
TensorFlow 2 a tensor (8).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.errors import SourceError
from tracker.readers._source import SourceText
from tracker.readers.training_log.columns import PackedColumn
from tracker.readers.training_log.grammar import PER_DEVICE, Grammar
from tracker.readers.training_log.scanning import Scan

HEADER_BYTES: Final = 12
_FOOTER_BYTES: Final = 4
_MAX_RECORD: Final = 1 << 30
_MASK: Final = 0xA282EAD8
_AT_ONCE: Final = 50_000
_LARGEST_SCALAR: Final = 4096
"""Records of scalars are small; in larger ones stand images, histograms and graphs, which no time is in."""

TAGS: Final[Mapping[str, Mapping[str, str]]] = {
    "torchtitan": {
        "time_metrics/end_to_end(s)": "step_s", "time_metrics/data_loading(s)": "data_s", "throughput(tps)": "tokens_s",
        "mfu(%)": "mfu", "tflops": "tflops", "memory/max_reserved(GiB)": "reserved_gib",
        "memory/max_active(GiB)": "allocated_gib",
    },
    "megatron": {"iteration-time": "step_s", "throughput": "tflops", "batch-size": "batch"},
    "nemo": {"train_step_timing in s": "step_s", "global_batch_size": "batch"},
    "detectron2": {"time": "step_s", "data_time": "data_s", "lr": "", "eta_seconds": "", "total_loss": ""},
    "mmengine": {"time": "step_s", "data_time": "data_s", "lr": "", "loss": "", "memory": "allocated_mib"},
    "mmengine (prefixed)": {"train/time": "step_s", "train/data_time": "data_s"},
    "paddlenlp": {
        "train/interval_runtime": "interval_s", "train/interval_samples_per_second": "samples_s",
    },
}  # fmt: skip
"""Framework -> tags of its scalars, and what they are, "" for one that only tells the framework.

The framework with most of its tags in a file counts, of several the first one.
"""
_MMENGINE: Final = "mmengine"

_SCOPES: Final = {"tokens_s": PER_DEVICE, "tflops": PER_DEVICE, "samples_s": "total"}


class Scalars(Struct):
    """A collector of the scalars of a file: by tag wall times in s, steps and values."""

    walls: dict[str, list[float]] = field(default_factory=dict)
    steps: dict[str, list[int]] = field(default_factory=dict)
    values: dict[str, list[float]] = field(default_factory=dict)
    texts: list[bytes] = field(default_factory=list)
    damaged: int = 0
    is_cut: bool = False
    first_wall: float = float("nan")
    last_wall: float = float("nan")


def is_event_file(head: bytes) -> bool:
    """Whether a file begins with the record of an event file: its length fits its check sum."""
    if len(head) < HEADER_BYTES:
        return False
    (check,) = struct.unpack_from("<I", head, 8)
    return bool(_masked(crc32c(head[:8])) == check)


def read_scalars(text: SourceText) -> Scalars:
    """Return the scalars of an event file. A SourceError where a length is damaged: nothing behind it can be read."""
    scalars = Scalars()
    waiting: list[tuple[bytes, int]] = []
    for data, check in _records(text, scalars):
        if len(data) <= _LARGEST_SCALAR:
            waiting.append((data, check))
        if len(waiting) >= _AT_ONCE:
            _take_records(waiting, scalars)
            waiting = []
    _take_records(waiting, scalars)
    return scalars


def _take_records(records: list[tuple[bytes, int]], scalars: Scalars) -> None:
    """Add the scalars of some records, those of one length checked at once."""
    is_whole = np.zeros(len(records), dtype=bool)
    lengths = np.array([len(data) for data, _ in records], dtype=np.int64)
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length)
        is_whole[places] = _check([records[place] for place in places.tolist()], length)
    scalars.damaged += int((~is_whole).sum())
    for place in np.flatnonzero(is_whole).tolist():
        wall, step, summary = _event(records[place][0])
        if np.isnan(wall):
            continue
        scalars.first_wall = wall if np.isnan(scalars.first_wall) else scalars.first_wall
        scalars.last_wall = wall
        for tag, value in _scalars(summary, scalars):
            scalars.walls.setdefault(tag, []).append(wall)
            scalars.steps.setdefault(tag, []).append(step)
            scalars.values.setdefault(tag, []).append(value)


def scan_scalars(scalars: Scalars) -> tuple[Scan, Grammar, str]:
    """Return the scalars as if they were lines, the grammar of the framework, and how the time was found."""
    name = max(TAGS, key=lambda framework: len(TAGS[framework].keys() & scalars.values.keys()))
    tags = {tag: quantity for tag, quantity in TAGS[name].items() if quantity and tag in scalars.values}
    name = name.partition(" ")[0]
    if name == _MMENGINE:
        scalars = _without_validation(scalars, tags)
    has_time = any(quantity in ("step_s", "interval_s", "tokens_s") for quantity in tags.values())
    way = ""
    if has_time:
        timed = next(tag for tag, quantity in tags.items() if quantity in ("step_s", "interval_s", "tokens_s"))
    else:
        # any scalar of each step has a wall time
        candidates = [tag for tag in scalars.values if len(set(scalars.steps[tag])) >= 3]
        if not candidates:
            return Scan(), Grammar("tensorboard", "TensorBoard", ()), ""
        timed = max(candidates, key=lambda tag: len(scalars.steps[tag]))
        tags = {}
        name, way = "tensorboard", f"the times at which {timed[:60]} was written"
    # a step that is written twice has two rows: which of them counts is decided as for the lines of a log
    writes = _numbered_writes(scalars.steps[timed])
    numbers = {"step": np.array(scalars.steps[timed], dtype=np.float64)}
    for tag, quantity in tags.items():
        values = dict(zip(_numbered_writes(scalars.steps[tag]), scalars.values[tag], strict=True))
        numbers[quantity] = np.array([values.get(write, np.nan) for write in writes])
    clocks = np.array(scalars.walls[timed]) * 1e9
    scan = Scan(
        numbers={quantity: PackedColumn.of(values) for quantity, values in numbers.items()},
        positions=PackedColumn.of(np.arange(len(writes), dtype=np.int64)),
        clocks=PackedColumn.of(clocks),
        first_clock=float(clocks[0]),
        last_clock=float(clocks[-1]),
        clock_digits=6,
    )
    grammar = Grammar(name, f"TensorBoard events of {name}", (), scopes=_SCOPES, takes_clock=True)
    return scan, grammar, way


def _without_validation(scalars: Scalars, tags: Iterable[str]) -> Scalars:
    """Return the scalars without single points at an earlier step, or at the same again, behind which steps go on.

    MMEngine writes the time of a validation under the tag of the training, at the number of the epoch or the same step.
    """
    taken = replace(scalars, walls={**scalars.walls}, steps={**scalars.steps}, values={**scalars.values})
    for tag in tags:
        steps = scalars.steps[tag]
        stays = [
            not at or step > steps[at - 1] or (at + 1 < len(steps) and steps[at + 1] <= steps[at - 1])
            for at, step in enumerate(steps)
        ]
        taken.walls[tag] = list(compress(scalars.walls[tag], stays))
        taken.steps[tag] = list(compress(steps, stays))
        taken.values[tag] = list(compress(scalars.values[tag], stays))
    return taken


def _numbered_writes(steps: Sequence[int]) -> list[tuple[int, int]]:
    """Return of each write its step, and how often that step was written before.

    >>> _numbered_writes([1, 2, 1])
    [(1, 0), (2, 0), (1, 1)]
    """
    times: dict[int, int] = {}
    writes = []
    for step in steps:
        writes.append((step, times.get(step, 0)))
        times[step] = times.get(step, 0) + 1
    return writes


def _records(text: SourceText, scalars: Scalars) -> Iterator[tuple[bytes, int]]:
    """Yield the data of each record and their check sum; a record that was cut at the end is left out."""
    content = bytearray()
    offset = 0
    for block in text:
        content += block  # a record may be longer than many blocks
        at = 0
        while len(content) - at >= HEADER_BYTES:
            length, check = struct.unpack_from("<QI", content, at)
            if _masked(crc32c(bytes(content[at : at + 8]))) != check or length > _MAX_RECORD:
                raise SourceError(
                    text.path, f"byte {offset + at}", "the length of a record does not fit its check sum",
                    remedy="copy the file again",
                )  # fmt: skip
            end = at + HEADER_BYTES + length + _FOOTER_BYTES
            if end > len(content):
                break
            (of_data,) = struct.unpack_from("<I", content, end - _FOOTER_BYTES)
            yield bytes(content[at + HEADER_BYTES : end - _FOOTER_BYTES]), of_data
            at = end
        offset += at
        del content[:at]
    scalars.is_cut = bool(content)


def _check(records: list[tuple[bytes, int]], length: int) -> list[bool]:
    """Return which of some records of one length fit their check sums; all bytes at one place at once."""
    if not length:
        return [_masked(0) == check for _, check in records]
    table = np.frombuffer(b"".join(data for data, _ in records), dtype=np.uint8).reshape(len(records), length)
    crc = np.full(len(records), 0xFFFFFFFF, dtype=np.uint32)
    for column in range(length):
        crc = _TABLE[(crc ^ table[:, column]) & 0xFF] ^ (crc >> np.uint32(8))
    crc ^= np.uint32(0xFFFFFFFF)
    masked = ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(_MASK)
    return [bool(one) for one in masked == np.array([check for _, check in records], dtype=np.uint32)]


def _make_table() -> NDArray[np.uint32]:
    table = np.zeros(256, dtype=np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        table[byte] = crc
    return table


_TABLE: Final = _make_table()
_TABLE_OF_INTS: Final = tuple(int(entry) for entry in _TABLE)


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of some bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE_OF_INTS[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _masked(crc: int) -> int:
    """Return a check sum as these files store it, rotated and shifted, since CRCs of CRCs are weak."""
    return (((crc >> 15) | (crc << 17 & 0xFFFFFFFF)) + _MASK) & 0xFFFFFFFF


def _event(data: bytes) -> tuple[float, int, bytes]:
    """Return wall time, step and summary of an event."""
    wall, step, summary = float("nan"), 0, b""
    for number, kind, value in _fields(data):
        if number == 1 and kind == 1 and isinstance(value, bytes):
            (wall,) = struct.unpack("<d", value)
        elif number == 2 and isinstance(value, int):
            step = value if value < 1 << 62 else 0
        elif number == 5 and isinstance(value, bytes):
            summary = value
    return wall, step, summary


def _scalars(summary: bytes, scalars: Scalars) -> Iterator[tuple[str, float]]:
    for number, _, value in _fields(summary):
        if number != 1 or not isinstance(value, bytes):
            continue
        tag, scalar = "", None
        for part, kind, content in _fields(value):
            if part == 1 and isinstance(content, bytes):
                tag = content.decode("utf-8", "replace")
            elif part == 2 and kind == 5 and isinstance(content, bytes):
                (scalar,) = struct.unpack("<f", content)
            elif part == 8 and isinstance(content, bytes):
                scalar = _of_tensor(content, scalars)
        if tag and scalar is not None:
            yield tag, float(scalar)


def _of_tensor(tensor: bytes, scalars: Scalars) -> float | None:
    """Return the number of a tensor of one float or double; keep a text of it, which may be a configuration."""
    for number, kind, value in _fields(tensor):
        if not isinstance(value, bytes):
            continue
        if number == 4 and len(value) == 4:
            return float(struct.unpack("<f", value)[0])
        if number == 4 and len(value) == 8:
            return float(struct.unpack("<d", value)[0])
        if number == 5 and kind in (2, 5) and len(value) == 4:
            return float(struct.unpack("<f", value)[0])
        if number == 6 and len(value) == 8:
            return float(struct.unpack("<d", value)[0])
        if number == 8:
            scalars.texts.append(value)
    return None


def _fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield number, wire type and value of the fields of a message; what is damaged ends it."""
    at = 0
    end = len(data)
    while at < end:
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, kind, value
            continue
        if kind == 1:
            length = 8
        elif kind == 5:
            length = 4
        elif kind == 2:
            length, at = _varint(data, at)
        else:
            return
        if at + length > end:
            return
        yield number, kind, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return value, at
