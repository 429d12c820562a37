"""communication.json and communication_matrix.json: where the time of collectives went, and what moved on which link.

Times are ms and sizes MB (10^6 bytes), as floats; ranks are those inside the group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.errors import SourceError
from tracker.profile import I32, I64, MISSING, CollectiveLinks, CollectiveTimes, Source, Strings
from tracker.readers._ascend.json_files import read_object
from tracker.readers._ascend.metadata import Metadata
from tracker.readers._collectives import kind_of
from tracker.readers._source import ReadOptions
from tracker.readers._times import MAX_NS, MAX_OF_ONE
from tracker.units import NS_PER_MS, NS_PER_US

_INDEX: Final = re.compile(r"(?:hcom_)?[a-zA-Z]+_{1,2}\d{3}_(\d{1,9})(?:_\d+)?", re.ASCII)
TOTAL: Final = "Total Op Info"
_BYTES_PER_MB: Final = 1_000_000
_NO_RANK: Final = 0xFFFFFFFF
_STEP: Final = re.compile(r"step(\d{1,18})")
_NAME: Final = re.compile(r"(?:hcom_)?(?P<kind>[a-zA-Z]+?)_{1,2}(?:(?P<digits>\d{3})_)?\d+", re.ASCII)
_TIMES: Final = ("Elapse Time(ms)", "Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)", "Idle Time(ms)")


class Link(Struct, frozen=True):
    """What moved over one transport. `source`, `target`: ranks in the group, -1 for all links together.

    `packet_bytes`: -1 for packets of all sizes. `packets`: or MISSING. `large_packet_ratio`: NaN where not said.
    """

    transport: str
    source: int
    target: int
    packet_bytes: int
    packets: int
    bytes: int
    transit_ns: int
    large_packet_ratio: float


class CommunicationOp(Struct, frozen=True):
    """One collective of communication.json. `start_ns` is off by up to 1 us: the file has it as a double.

    `step`: None without a schedule. `name`: without the group. `group`: its double hash, '' where the name has none.
    """

    step: int | None
    name: str
    group: str
    start_ns: int
    elapse_ns: int
    transit_ns: int
    wait_ns: int
    synchronization_ns: int
    idle_ns: int
    links: tuple[Link, ...]


class MatrixTotal(Struct, frozen=True):
    """What all collectives of one kind and group moved between two ranks in a step, by communication_matrix.json."""

    step: int | None
    kind: str
    group: str
    link: Link


def kind_in_name(name: str) -> str:
    """The kind of a collective from its name on the device.

    >>> kind_in_name("hcom_allReduce__586_0_1"), kind_in_name("hcom_batchSendRecv__128_3_1"), kind_in_name("other")
    ('all_reduce', 'send_recv', 'other')
    """
    match = _NAME.match(name)
    return kind_of(match.group("kind") if match else name.removeprefix("hcom_"))


def group_in_name(name: str) -> str:
    """What the name of a collective tells of its group: the last three digits of the double hash, '' without them.

    >>> group_in_name("hcom_allReduce__586_0_1"), group_in_name("hcom_broadcast__445_0"), group_in_name("hcom_x")
    ('586', '445', '')
    """
    match = _NAME.match(name)
    return match.group("digits") or "" if match else ""


def index_in_name(name: str) -> int:
    """The number of a collective in its group, as HCCL counts them; MISSING where the name has none.

    >>> index_in_name("hcom_allReduce__586_4_1"), index_in_name("hcom_x") == MISSING
    (4, True)
    """
    match = _INDEX.fullmatch(name)
    return int(match.group(1)) if match else MISSING


def read_communication(path: Path, options: ReadOptions) -> tuple[list[CommunicationOp], Source]:
    """The collectives of communication.json, totals left out; also of the flat file below PROF_*/analyze."""
    value, source = read_object(path, options)
    return list(_ops(path, value)), source


def read_matrix(path: Path, options: ReadOptions) -> tuple[list[MatrixTotal], Source]:
    """The totals of communication_matrix.json; its best, middle and worst single operations are left out."""
    value, source = read_object(path, options)
    return list(_totals(path, value)), source


def global_link(link: Link, group: str, metadata: Metadata) -> Link:
    """`link` with global ranks, by the members of its group."""
    if link.source < 0:
        return link
    known = metadata.group(group)
    return replace(link, source=known.global_rank(link.source), target=known.global_rank(link.target))


def other_ends(source: I64, target: I64) -> I64:
    """Return the rank in the group at the other end of each task, -1 where it is none: HCCL writes 2^32 - 1, or the
    rank itself.
    """
    is_other = (target >= 0) & (target != _NO_RANK) & (target != source)
    ends: I64 = np.where(is_other, target, -1).astype(np.int64)
    return ends


def global_peers(peer: I64, call: I32, groups: Sequence[str], metadata: Metadata) -> I64:
    """Return the global rank of each peer, by the members of the group of its call; the rank in the group where these
    are not known. `groups`: the name of the group of each call.
    """
    members = [metadata.group(group) for group in groups]
    distinct, place = np.unique(np.stack((call.astype(np.int64), peer)), axis=1, return_inverse=True)
    ranks = [members[index].global_rank(local) for index, local in distinct.T.tolist()]
    return np.array(ranks, dtype=np.int64)[place.reshape(-1)]


def _steps(value: Mapping[str, Any]) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    """Step and its op -> record; the file of one raw capture has no steps and kinds around its records."""
    if any("@" in name or name == TOTAL for name in value):
        yield None, value
        return
    for name, kinds in value.items():
        match = _STEP.fullmatch(name)
        for records in kinds.values() if isinstance(kinds, dict) else ():
            yield int(match.group(1)) if match else None, records if isinstance(records, dict) else {}


def _ops(path: Path, value: Mapping[str, Any]) -> Iterator[CommunicationOp]:
    for step, records in _steps(value):
        for full_name, record in records.items():
            if full_name.startswith(TOTAL):
                continue
            name, _, group = full_name.partition("@")
            try:
                times = record["Communication Time Info"]
                spent = [_ns(times.get(title)) for title in _TIMES]
                start = _start_ns(times["Start Timestamp(us)"])
                links = tuple(_bandwidth(record.get("Communication Bandwidth Info") or {}))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise SourceError(path, full_name, f"not a record of a collective: {error}") from error
            elapse, transit, wait, synchronization, idle = spent
            yield CommunicationOp(step, name, group, start, elapse, transit, wait, synchronization, idle, links)


def _bandwidth(transports: Mapping[str, Any]) -> Iterator[Link]:
    """A row per transport that moved anything, and one per size of its packets."""
    for transport, said in transports.items():
        moved, transit = _bytes(said["Transit Size(MB)"]), _ns(said["Transit Time(ms)"])
        if not moved and not transit:
            continue
        ratio = said.get("Large Packet Ratio")
        large = float(ratio) if ratio is not None else float("nan")
        sizes = said.get("Size Distribution") or {}
        counts = [_whole(float(count)) for count, _ in sizes.values()]
        yield Link(transport, -1, -1, -1, sum(counts) if counts else MISSING, moved, transit, large)
        for (size, (_, duration)), count in zip(sizes.items(), counts, strict=True):
            packet = _bytes(size)
            yield Link(transport, -1, -1, packet, count, _whole(packet * count), _ns(duration), float("nan"))


def _totals(path: Path, value: Mapping[str, Any]) -> Iterator[MatrixTotal]:
    for step, records in _steps(value):
        kinds = _kinds(records)
        for full_name, links in records.items():
            name, _, group = full_name.partition("@")
            word, _, part = name.rpartition("-")
            if part != "total":
                continue
            try:
                for ends, said in links.items():
                    source, target = (int(rank) for rank in ends.split("-"))
                    moved, transit = _bytes(said["Transit Size(MB)"]), _ns(said["Transit Time(ms)"])
                    transport = said["Transport Type"]
                    if not isinstance(transport, str):
                        raise ValueError("Transport Type is no text")
                    link = Link(transport, source, target, -1, MISSING, moved, transit, float("nan"))
                    yield MatrixTotal(step, kinds.get((word, group)) or kind_of(word), group, link)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise SourceError(path, full_name, f"not a record of a link: {error}") from error


def _kinds(records: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """The kind behind the short words of the matrix, by the operations it names: it calls a reduceScatter `reduce`."""
    kinds = {}
    for full_name, links in records.items():
        name, _, group = full_name.partition("@")
        word = name.rpartition("-")[0]
        for said in links.values() if isinstance(links, dict) else ():
            # MindSpore documents it as op_name
            named = (said.get("Op Name") or said.get("op_name")) if isinstance(said, dict) else None
            if isinstance(named, str):
                kinds[word, group] = kind_in_name(named)
    return kinds


def _ns(ms: Any) -> int:
    return MISSING if ms is None else _whole(float(ms) * NS_PER_MS)


def _start_ns(us: Any) -> int:
    start = float(us) * NS_PER_US
    if not abs(start) <= MAX_NS:
        raise ValueError(f"{us} is beyond the range of times")
    return round(start)


def _bytes(mb: Any) -> int:
    return _whole(float(mb) * _BYTES_PER_MB)


def _whole(number: float) -> int:
    """The nearest whole number; ValueError for one that is none, or beyond what sums in 64 bits allow."""
    if not abs(number) <= MAX_OF_ONE:
        raise ValueError(f"{number:g} is beyond the range of times and bytes")
    return round(number)


def times_table(known: Sequence[tuple[int, CommunicationOp]]) -> CollectiveTimes:
    """Where the time of calls went: their rows in the table of collectives, and their records."""

    def column(name: str) -> I64:
        return np.array([getattr(op, name) for _, op in known], dtype=np.int64)

    return CollectiveTimes(
        collective=np.array([row for row, _ in known], dtype=np.int32),
        transit_ns=column("transit_ns"),
        wait_ns=column("wait_ns"),
        synchronization_ns=column("synchronization_ns"),
        idle_ns=column("idle_ns"),
    )


def links_table(links: Sequence[tuple[int, Link]], strings: Strings) -> CollectiveLinks:
    """One row per link and the call that used it."""

    def column(name: str) -> I64:
        return np.array([getattr(link, name) for _, link in links], dtype=np.int64)

    return CollectiveLinks(
        collective=np.array([call for call, _ in links], dtype=np.int32),
        transport=np.array([strings.code(link.transport) for _, link in links], dtype=np.int32),
        source=column("source"),
        target=column("target"),
        packet_bytes=column("packet_bytes"),
        packets=column("packets"),
        bytes=column("bytes"),
        transit_ns=column("transit_ns"),
        large_packet_ratio=np.array([link.large_packet_ratio for _, link in links], dtype=np.float64),
    )
