"""Where a kernel or task ran, as part of what identifies it: chips do the same work on other cores and planes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tracker.lazy import pd
from tracker.units import format_numbers


def paired_cores(baseline: pd.DataFrame, candidate: pd.DataFrame, key: Sequence[str]) -> list[pd.DataFrame]:
    """Both frames with one `core_type` for a `key` that each side runs on one kind of core, such as
    `AI_CORE -> AI_VECTOR_CORE`.

    A chip with one kind of core calls it AI_CORE, one with two runs the same kernel on a vector core: that is the
    same kernel, and not one removed and one added. Where one side does not say, the other one's word stands. A key
    with several kinds of cores on a side keeps them apart.
    """
    told = core_names(baseline, candidate, key)
    return [with_cores(frame, told) for frame in (baseline, candidate)]


def core_names(baseline: pd.DataFrame, candidate: pd.DataFrame, key: Sequence[str]) -> pd.Series:
    """What `paired_cores` calls the cores of each `key` that the sides run on other cores; index: `key`, if any."""
    if len({*baseline["core_type"].unique(), *candidate["core_type"].unique()}) < 2:
        return pd.Series(dtype=object)
    before, after = (_only_core(frame, list(key)) for frame in (baseline, candidate))
    pairs = before.rename("before").to_frame().join(after.rename("after"), how="inner")
    pairs = pairs[pairs["before"] != pairs["after"]]
    texts = [
        f"{old} -> {new}" if old and new else old or new
        for old, new in zip(pairs["before"], pairs["after"], strict=True)
    ]
    return pd.Series(texts, index=pairs.index, dtype=object)


def with_cores(frame: pd.DataFrame, names: pd.Series) -> pd.DataFrame:
    """`frame` with the cores of `names`, an answer of `core_names`."""
    return _renamed(frame, [str(name) for name in names.index.names], "core_type", names)


def paired_planes(baseline: pd.DataFrame, candidate: pd.DataFrame, key: Sequence[str]) -> list[pd.DataFrame]:
    """Both frames with one `plane` for the tasks of a `key` that the sides run on other planes, such as `0 -> 1-7`.

    How many planes a collective uses is a matter of chip and algorithm; its tasks are then one row, of all planes.
    """
    keys = list(key)
    planes = [frame.groupby(keys, dropna=False)["plane"].agg(_planes) for frame in (baseline, candidate)]
    pairs = planes[0].to_frame("before").join(planes[1].to_frame("after"), how="inner")
    pairs = pairs[pairs["before"] != pairs["after"]]
    told = pairs["before"] + " -> " + pairs["after"]
    return [_renamed(frame, keys, "plane", told) for frame in (baseline, candidate)]


def _planes(planes: Iterable[str]) -> str:
    distinct = sorted(set(planes))
    if all(plane.isdecimal() for plane in distinct):
        return format_numbers(sorted(map(int, distinct)))
    return ",".join(distinct)


def _renamed(frame: pd.DataFrame, keys: list[str], column: str, told: pd.Series) -> pd.DataFrame:
    """`frame` with the text of `told` (index: the keys) in `column`, where there is one."""
    if told.empty:
        return frame
    found = told.reindex(pd.MultiIndex.from_frame(frame[keys]) if len(keys) > 1 else frame[keys[0]])
    texts = [old if pd.isna(new) else new for old, new in zip(frame[column], found, strict=True)]
    return frame.assign(**{column: pd.array(texts, dtype="string")})


def _only_core(frame: pd.DataFrame, keys: list[str]) -> pd.Series:
    """`core_type` of each key that has one only; index: the keys."""
    distinct = frame[[*keys, "core_type"]].drop_duplicates()
    return distinct[~distinct.duplicated(keys, keep=False)].set_index(keys)["core_type"]
