"""What collectives moved over which link of two sides, or of one: bytes, bandwidth, packets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from tracker.columns import Columns
from tracker.compare import join, knowing, reduction
from tracker.compare.filters import matching
from tracker.compare.group_pairs import roles_by_size, with_roles
from tracker.compare.keys import numbered
from tracker.lazy import pd
from tracker.results import DIFF_COLUMNS, LINK, LINK_KEY, PACKET, TRANSPORT
from tracker.store import queries

if TYPE_CHECKING:
    from tracker.columns import F64
    from tracker.compare.keys import Numbered
    from tracker.compare.sides import Loaded
    from tracker.results import DiffOptions, Selection

_KEY: Final = list(LINK_KEY)
_NUMBERS: Final = ("group_size", "source_rank", "target_rank")
_SUMS: Final = ["calls", "packets", "bytes", "transit_ns"]
_COLLECTIVE: Final = ("run_id", "rank", "step", "kind", "group_role", "group_size")
_PARTS_OF_SDMA: Final = ["HCCS", "PCIE", "SIO"]
_ENDS: Final = ["source_rank", "target_rank", "packet_bytes"]


def of_side(side: Loaded, options: Selection, by: Sequence[str], *, in_steps: bool) -> pd.DataFrame:
    """The links of a side at the grain `by`, with `bandwidth_gb_per_s` (bytes per ns of transit).

    A transport of which the source only says single links gets a row for all of them together. SDMA of collectives
    whose HCCS, PCIE or SIO is there as well is left out: it stands for these together. The share of large packets is
    missing where no packets were counted. `level` says which rows state the same bytes: sum up those of one only.
    `options.minimum_ns` drops rows, but no part of a sum.
    """
    asked = side.ask(queries.communication_links, by=by, in_steps=in_steps)
    frame = matching(matching(asked, "kind", options.kind), "group_role", options.group).frame
    frame = _with_totals(_without_sums(frame))
    if options.minimum_ns is not None:
        frame = frame[(frame["transit_ns"].fillna(0) >= options.minimum_ns).astype(bool)].reset_index(drop=True)
    frame["large_packet_ratio"] = frame["large_packet_ratio"].where(frame["packets"].notna())
    transit = frame["transit_ns"].astype("Float64")
    speeds = frame.assign(bandwidth_gb_per_s=frame["bytes"].astype("Float64") / transit.where(transit > 0))
    return _by_level(speeds)


def _by_level(frame: pd.DataFrame) -> pd.DataFrame:
    """`frame` with its `level`, level by level, the order within a level kept."""
    level = pd.Series(TRANSPORT, index=frame.index, dtype=object)
    level = level.mask(frame["source_rank"].notna(), LINK)
    if "packet_bytes" in frame:
        level = level.mask(frame["packet_bytes"].notna(), PACKET)
    place = level.map({TRANSPORT: 0, LINK: 1, PACKET: 2})
    frame.insert(int(frame.columns.get_indexer(["kind"])[0]), "level", level)
    return frame.iloc[place.argsort(kind="stable")].reset_index(drop=True)


def _without_sums(frame: pd.DataFrame) -> pd.DataFrame:
    """`frame` without SDMA where its parts have rows of their own: the bytes would be there twice."""
    key = [name for name in frame.columns if name in _COLLECTIVE]
    rows = pd.MultiIndex.from_frame(frame[key].astype(object).where(frame[key].notna(), -1))
    is_sum = (frame["transport"] == "SDMA").to_numpy(dtype=bool)
    return frame[~(is_sum & rows.isin(rows[frame["transport"].isin(_PARTS_OF_SDMA).to_numpy(dtype=bool)]))]


def _with_totals(frame: pd.DataFrame) -> pd.DataFrame:
    """`frame` and, per collective and transport without a row for all links together, the sum of its single links."""
    key = [name for name in frame.columns if name not in (*_SUMS, *_ENDS, "large_packet_ratio")]
    is_whole = frame["source_rank"].isna() & frame["packet_bytes"].isna()
    pairs = frame[frame["source_rank"].notna() & frame["packet_bytes"].isna()]
    if pairs.empty:
        return frame.reset_index(drop=True)
    sums = _whole_sums(pairs, key, _SUMS)
    known = frame[is_whole].groupby(key, dropna=False).size().index
    added = sums[~sums.index.isin(known)].reset_index()
    added = added.reindex(columns=frame.columns).astype(frame.dtypes.to_dict())
    return pd.concat([added, frame], ignore_index=True)


def _whole_sums(frame: pd.DataFrame, key: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """The sums of `columns` per `key`, NA where any number is: a sum of the others would look whole."""
    grouped = frame[[*key, *columns]].groupby(list(key), dropna=False, sort=False)
    return grouped.sum(min_count=1).where(grouped.count().eq(grouped.size(), axis=0))


def compare(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> Columns:
    """The `communication_links` of a Diff, of the ranks that use a link."""
    tables = []
    sides = knowing.both(baseline, candidate, knowing.COLLECTIVES)
    if all(side.lacks(queries.communication_links) for side in sides):
        return join.nothing("communication_links")
    for side, roles in zip(sides, roles_by_size(*sides), strict=True):
        frame = of_side(side, replace(options, minimum_ns=None), ("run", *reduction.GRAIN), in_steps=True)
        tables.append(_with_shares(with_roles(Columns.of_frame(frame[frame["packet_bytes"].isna()]), roles)))
    rows, keys = numbered(tables, _KEY)
    numbers = [_numbers_of(side, own) for side, own in zip(sides, rows, strict=True)]
    joined = join.with_difference(join.matched(keys, rows, numbers), "transit_ns")
    joined = join.large(joined, "transit_ns", options.minimum_ns)
    joined = Columns(joined).frame
    for name in _NUMBERS:
        number = joined[name].astype("Int64")
        joined[name] = number.where(number >= 0)
    return Columns.of_frame(_by_level(joined)[list(DIFF_COLUMNS["communication_links"])])


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
