"""What collectives moved over which link of two sides, or of one: bytes, bandwidth, packets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from tracker.columns import Column, Columns, objects
from tracker.compare import join, knowing, reduction
from tracker.compare.filters import matching
from tracker.compare.group_pairs import roles_by_size, with_roles
from tracker.results import DIFF_COLUMNS, LINK, LINK_KEY, PACKET, TRANSPORT
from tracker.store import queries
from tracker.table import add_up_rows, is_among, number_distinct_rows, number_tables

if TYPE_CHECKING:
    from tracker.columns import F64
    from tracker.compare.sides import Loaded
    from tracker.results import DiffOptions, Selection
    from tracker.table import Numbered

_KEY: Final = list(LINK_KEY)
_NUMBERS: Final = ("group_size", "source_rank", "target_rank")
_SUMS: Final = ["calls", "packets", "bytes", "transit_ns"]
_COLLECTIVE: Final = ("run_id", "rank", "step", "kind", "group_role", "group_size")
_PARTS_OF_SDMA: Final = ["HCCS", "PCIE", "SIO"]
_ENDS: Final = ["source_rank", "target_rank", "packet_bytes"]


def of_side(side: Loaded, options: Selection, by: Sequence[str], *, in_steps: bool) -> Columns:
    """The links of a side at the grain `by`, with `bandwidth_gb_per_s` (bytes per ns of transit).

    A transport of which the source only says single links gets a row for all of them together. SDMA of collectives
    whose HCCS, PCIE or SIO is there as well is left out: it stands for these together. The share of large packets is
    missing where no packets were counted. `level` says which rows state the same bytes: sum up those of one only.
    `options.minimum_ns` drops rows, but no part of a sum.
    """
    asked = side.ask(queries.communication_links, by=by, in_steps=in_steps)
    table = matching(matching(asked, "kind", options.kind), "group_role", options.group)
    table = _with_totals(_without_sums(table))
    if options.minimum_ns is not None:
        table = table.taken(table.integers("transit_ns") >= options.minimum_ns)
    transit = table.reals("transit_ns")
    return _by_level(
        table.having(
            large_packet_ratio=np.where(table.known("packets"), table.reals("large_packet_ratio"), np.nan),
            bandwidth_gb_per_s=table.reals("bytes") / np.where(transit > 0, transit, np.nan),
        )
    )


def _by_level(table: Columns) -> Columns:
    """`table` with its `level`, level by level, the order within a level kept."""
    place = table.known("source_rank").astype(np.int64)
    if "packet_bytes" in table:
        place[table.known("packet_bytes")] = 2
    level = objects([TRANSPORT, LINK, PACKET])[place]
    names = list(table.arrays)
    at = names.index("kind")
    return table.having(level=level).only([*names[:at], "level", *names[at:]]).taken(place.argsort(kind="stable"))


def _without_sums(table: Columns) -> Columns:
    """`table` without SDMA where its parts have rows of their own: the bytes would be there twice."""
    place, first = number_distinct_rows([table[name] for name in table.arrays if name in _COLLECTIVE])
    has_parts = np.bincount(place, is_among(table["transport"], _PARTS_OF_SDMA), len(first)) > 0
    return table.taken(~((table["transport"] == "SDMA") & has_parts[place]))


def _with_totals(table: Columns) -> Columns:
    """`table` and, per collective and transport without a row for all links together, the sum of its single links; a
    sum is missing where any of its numbers is: a sum of the others would look whole.
    """
    of_links, of_packets = table.known("source_rank"), table.known("packet_bytes")
    if not (of_links & ~of_packets).any():
        return table
    key = [name for name in table.arrays if name not in (*_SUMS, *_ENDS, "large_packet_ratio")]
    sums = add_up_rows(table.taken(of_links & ~of_packets), key, dict.fromkeys(_SUMS, "sum"))
    (whole, own), _ = number_tables([table.taken(~of_links & ~of_packets), sums], key)
    added = sums.taken(~np.isin(own.number, whole.number))
    none = np.ones(len(added), dtype=bool)
    ends = {name: Column(np.zeros(len(added), dtype=np.int64), none) for name in _ENDS}
    added = added.having(**ends, large_packet_ratio=np.full(len(added), np.nan))
    return Columns.stacked([added.only(list(table.arrays)), table])


def compare(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> Columns:
    """The `communication_links` of a Diff, of the ranks that use a link."""
    tables = []
    sides = knowing.both(baseline, candidate, knowing.COLLECTIVES)
    if all(side.lacks(queries.communication_links) for side in sides):
        return join.nothing("communication_links")
    for side, roles in zip(sides, roles_by_size(*sides), strict=True):
        table = of_side(side, replace(options, minimum_ns=None), ("run", *reduction.GRAIN), in_steps=True)
        tables.append(_with_shares(with_roles(table.taken(~table.known("packet_bytes")), roles)))
    rows, keys = number_tables(tables, _KEY)
    numbers = [_numbers_of(side, own) for side, own in zip(sides, rows, strict=True)]
    joined = join.with_difference(join.matched(keys, rows, numbers), "transit_ns")
    joined = join.large(joined, "transit_ns", options.minimum_ns)
    joined = joined.having(**{name: Column(joined[name], joined[name] < 0) for name in _NUMBERS})
    return _by_level(joined).only(DIFF_COLUMNS["communication_links"])


def _with_shares(table: Columns) -> Columns:
    """The rows with the bytes in `large` packets, those of which the share is `stated`, and -1 for unknown ends."""
    ratio, size = table.reals("large_packet_ratio"), table.reals("bytes")
    ends = {name: table.integers(name, missing=-1) for name in _NUMBERS}
    return table.having(**ends, large=ratio * size, stated=np.where(np.isnan(ratio), np.nan, size))


def _numbers_of(side: Loaded, rows: Numbered) -> dict[str, F64]:
    found = reduction.of_side(
        side, rows, [*_SUMS, "large", "stated"], _SUMS, dict.fromkeys(("large", "stated"), "bytes")
    )
    transit, stated = found["transit_ns"], found.pop("stated")
    found["bandwidth_gb_per_s"] = found["bytes"] / np.where(transit != 0, transit, np.nan)
    found["large_packet_ratio"] = found.pop("large") / np.where(stated != 0, stated, np.nan)
    return found
