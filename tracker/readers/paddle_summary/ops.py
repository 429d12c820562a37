"""The indented rows of an Operator Summary as a tree of ops, and the rows of `op` and `op_tree` that it gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from tracker.readers import _rows
from tracker.readers.paddle_summary.sections import Row


class Node(Struct):
    """An op with the inner ops and the device events that stand indented below it."""

    row: Row
    children: list[Node] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)


def tree_of(rows: Iterable[Row]) -> list[Node]:
    """The outermost ops, each with what is below it. A device event belongs to the op that it is indented under."""
    roots: list[Node] = []
    open_nodes: list[Node] = []
    for row in rows:
        while open_nodes and open_nodes[-1].row.level >= row.level:
            open_nodes.pop()
        if row.is_device_event and open_nodes:
            open_nodes[-1].events.append(row)
            continue
        node = Node(row)
        (open_nodes[-1].children if open_nodes else roots).append(node)
        open_nodes.append(node)
    return roots


def launched(nodes: Sequence[Node]) -> Iterator[tuple[str, Row]]:
    """(name of the op, device event) for all device events that stand below an op, at any depth."""
    for node in nodes:
        yield from ((node.row.name, event) for event in node.events)
        yield from launched(node.children)


class _Sum(Struct):
    """The rows of one op key, added up."""

    calls: list[int | None] = field(default_factory=list)
    host_total_ns: list[int | None] = field(default_factory=list)
    host_self_ns: list[int | None] = field(default_factory=list)
    device_total_ns: list[int | None] = field(default_factory=list)
    device_self_ns: list[int | None] = field(default_factory=list)
    smallest_ns: list[int | None] = field(default_factory=list)
    largest_ns: list[int | None] = field(default_factory=list)
    host_smallest_ns: list[int | None] = field(default_factory=list)
    host_largest_ns: list[int | None] = field(default_factory=list)
    kernel_count: list[int | None] = field(default_factory=list)


class Book:
    """Collects the rows of `op` (one per key, equal names added up) and of `op_tree` (`tree_rows`, one per path)."""

    def __init__(self, keys: _rows.Keys, step: int, *, on_device: bool) -> None:
        self.tree_rows: list[_rows.Row] = []
        self._keys = keys
        self._step = step
        self._on_device = on_device
        self._sums: dict[int, _Sum] = {}

    def add_tree(self, nodes: Sequence[Node], parent: int = -1, inside: frozenset[str] = frozenset()) -> None:
        """Adds ops and all below them. Own time is the total without that of the inner ops, at least 0: the printed
        numbers are rounded.
        """
        for node in nodes:
            row, key = node.row, self._keys.at(name=node.row.name)
            host = _without(row.host.total_ns, [child.row.host.total_ns for child in node.children])
            device = _without(row.device.total_ns, [child.row.device.total_ns for child in node.children])
            kernels = sum(event.calls or 0 for _, event in launched([node]))
            total = self._sums.setdefault(key, _Sum())
            total.calls.append(row.calls)
            total.host_self_ns.append(host)
            total.device_self_ns.append(device)
            total.kernel_count.append(sum(event.calls or 0 for event in node.events))
            if row.name not in inside:
                self._add_spread(total, row)
            number = len(self.tree_rows)
            self.tree_rows.append(
                {"step": self._step, "node": number, "parent": parent, "op_key": key, "calls": row.calls,
                 "host_total_ns": row.host.total_ns, "device_total_ns": row.device.total_ns, "device_self_ns": device,
                 "kernel_count": kernels}
            )  # fmt: skip
            self.add_tree(node.children, number, inside | {row.name})

    def add_rest(self, name: str, host_ns: int | None, device_ns: int | None) -> None:
        """Adds the time of ops that the table leaves out; nothing where none is known. Their calls are not known."""
        if host_ns or device_ns:
            total = self._sums.setdefault(self._keys.at(name=name), _Sum())
            for column, value in (
                (total.host_total_ns, host_ns), (total.host_self_ns, host_ns),
                (total.device_total_ns, device_ns), (total.device_self_ns, device_ns),
            ):  # fmt: skip
                column.append(value)

    def add_range(self, row: Row, phase: str = "") -> None:
        """Adds a range around ops: a phase, or one that the user marked.

        Its total is known, its own time is not: the summary does not say which ops ran in it.
        """
        total = self._sums.setdefault(self._keys.at(name=row.name, phase=phase), _Sum())
        total.calls.append(row.calls)
        self._add_spread(total, row)

    def op_rows(self) -> list[_rows.Row]:
        """The rows of table `op`."""
        return [
            {
                "step": self._step,
                "op_key": key,
                "calls": known_sum(total.calls),
                "host_total_ns": known_sum(total.host_total_ns),
                "host_self_ns": known_sum(total.host_self_ns),
                "device_total_ns": known_sum(total.device_total_ns),
                "device_self_ns": known_sum(total.device_self_ns),
                "min_ns": known_min(total.smallest_ns),
                "max_ns": known_max(total.largest_ns),
                "host_min_ns": known_min(total.host_smallest_ns),
                "host_max_ns": known_max(total.host_largest_ns),
                "kernel_count": known_sum(total.kernel_count),
            }
            for key, total in self._sums.items()
        ]

    def _add_spread(self, total: _Sum, row: Row) -> None:
        spread = row.device if self._on_device else row.host
        total.host_total_ns.append(row.host.total_ns)
        total.device_total_ns.append(row.device.total_ns)
        total.smallest_ns.append(spread.smallest_ns)
        total.largest_ns.append(spread.largest_ns)
        if self._on_device:
            total.host_smallest_ns.append(row.host.smallest_ns)
            total.host_largest_ns.append(row.host.largest_ns)


def _without(total: int | None, parts: Iterable[int | None]) -> int | None:
    return None if total is None else max(0, total - sum(part or 0 for part in parts))


def known_sum(values: Iterable[int | None]) -> int | None:
    """The sum of those that are known, None where none is.

    >>> known_sum([1, None, 2]), known_sum([None])
    (3, None)
    """
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def known_min(values: Iterable[int | None]) -> int | None:
    """The smallest of those that are known, None where none is."""
    return min((value for value in values if value is not None), default=None)


def known_max(values: Iterable[int | None]) -> int | None:
    """The largest of those that are known, None where none is."""
    return max((value for value in values if value is not None), default=None)
