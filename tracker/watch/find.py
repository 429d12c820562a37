"""What a watched folder holds: its profiles, by the layout, and what kept a look from seeing everything."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, field

from tracker.config import Folder
from tracker.config.layout import Part, parse
from tracker.config.places import user_path
from tracker.errors import SourceError, UsageError
from tracker.intake import Sidecar
from tracker.limits.files import is_real_file, is_real_folder
from tracker.limits.touch import touch
from tracker.readers import PARTIAL, NotRecognised, is_sidecar, not_recognised_line
from tracker.schema.column_names import WORKLOAD


class Labels(Struct, frozen=True):
    """What settings and layout say of a profile; None: they do not."""

    workload: str | None
    version: str | None
    configuration: Mapping[str, str]
    tags: Mapping[str, str]
    branch: str | None = None


class Item(Struct, frozen=True):
    """A profile: a file or folder that is ingested by one call."""

    path: Path
    labels: Labels


class Listing(Struct):
    """What is below a watched folder. `unseen`: folders that could not be looked into, with why.

    `workloads`: that the layout has a folder for, whether there is a profile in it or not.
    `unplaced`: files and folders that fit no part of the layout. `left_out`: what must not be touched, with why.
    """

    items: list[Item] = field(default_factory=list)
    unseen: dict[Path, str] = field(default_factory=dict)
    workloads: set[str] = field(default_factory=set)
    unplaced: list[Path] = field(default_factory=list)
    left_out: dict[Path, str] = field(default_factory=dict)

    def may_hold(self, path: Path) -> bool:
        """Whether `path` may be there although it was not seen."""
        return any(folder == path or folder in path.parents for folder in self.unseen)


def root_of(folder: Folder, settings_file: Path | None) -> Path:
    """Where a watched folder is; a relative path starts at the settings file."""
    start = settings_file.parent if settings_file is not None else Path()
    return Path(os.path.normpath(start.absolute() / user_path(folder.path)))


def listing(folder: Folder, root: Path, left_out: Mapping[Path, str] = MappingProxyType({})) -> Listing:
    """All profiles below `root`, in order of their paths.

    Links are followed, but not in circles. Left out are hidden names, `.part`, and sidecars, which only
    tell of a profile. left_out: paths that are not touched, with why.
    """
    found = Listing()
    if root in left_out:
        found.unseen[root] = left_out[root]
        return found
    found.left_out = dict(left_out)
    _descend(folder, root, parse(folder.layout), {}, found)
    return found


def laid_out(paths: Sequence[Path], layout: str) -> tuple[dict[Path, Sidecar], list[NotRecognised]]:
    """What a layout says of each profile below the folders `paths`, in order, and what it has no place for.

    UsageError for a layout that is none, SourceError for a folder that cannot be looked into.
    """
    try:
        parse(layout)
    except ValueError as error:
        raise UsageError(f"--layout {layout}: {error}", remedy="write it like '{workload}/{version}/*'") from error
    placed: dict[Path, Sidecar] = {}
    unplaced: list[Path] = []
    for path in paths:
        if not path.is_dir():
            raise SourceError(path, "", "is no folder, and --layout is about those below one", remedy="give a folder")
        found = listing(Folder(path=str(path), layout=layout), path)
        if found.unseen:
            raise SourceError(path, "", next(iter(found.unseen.values())), remedy="make it readable")
        for item in found.items:
            said = item.labels
            placed[item.path] = Sidecar(
                version=said.version,
                workload=said.workload,
                branch=said.branch,
                configuration=dict(said.configuration),
                tags=dict(said.tags),
            )
        unplaced += found.unplaced
    left = [NotRecognised(str(path), "fits no part of the layout") for path in unplaced]
    if not placed:
        problem = f"{paths[0]}: nothing fits the layout {layout}; {not_recognised_line(left)}"
        raise UsageError(problem, remedy="check both")
    return placed, left


def labels_of(folder: Folder, names: Sequence[str]) -> Labels | None:
    """What is said of the profile with these names below the watched folder; None where the layout has none there."""
    parts = parse(folder.layout)
    found = [part.match(name) for part, name in zip(parts, names, strict=False)]
    if len(parts) != len(names) or None in found:
        return None
    return _labels(folder, {key: value for said in found for key, value in (said or {}).items()})


def _descend(
    folder: Folder,
    place: Path,
    parts: tuple[Part, ...],
    said: Mapping[str, str],
    found: Listing,
    around: tuple[str, ...] = (),
) -> None:
    with touch(place):
        real = os.path.realpath(place)
    if real in around:
        return  # a link to a folder around it
    part, rest = parts[0], parts[1:]
    for name in _names(place, found):
        path = place / name
        more = part.match(name)
        with touch(path):
            is_placed = more is not None and _is_there(path, found, as_folder=bool(rest))
            is_unplaced = not is_placed and not name.startswith(".") and os.path.exists(path)
        if more is None or not is_placed:
            if is_unplaced:
                found.unplaced.append(path)
            continue
        known = {**said, **more}
        if not rest:
            found.items.append(Item(path, _labels(folder, known)))
        else:
            _descend(folder, path, rest, known, found, (*around, real))
        if "workload" in known:
            found.workloads.add(known[WORKLOAD])


def _names(place: Path, found: Listing) -> Iterator[str]:
    """The names in a folder, in order; those that no database can hold are reported."""
    try:
        with touch(place):
            names = sorted(os.listdir(place))
    except OSError as error:
        found.unseen[place] = f"{place}: cannot be looked into ({error.strerror})"
        return
    for name in names:
        if (place / name) in found.left_out:
            found.unseen[place / name] = found.left_out[place / name]
            continue
        with touch(place / name):
            is_left_out = name.endswith(PARTIAL) or is_sidecar(place / name)
        if is_left_out:
            continue
        if not name.isascii() and any("\udc80" <= char <= "\udcff" for char in name):
            shown = name.encode("utf-8", "backslashreplace").decode()
            found.unseen[place / name] = f"{place / shown}: the name is no UTF-8; rename it"
            continue
        yield name


def _is_there(path: Path, found: Listing, *, as_folder: bool) -> bool:
    """Whether `path` is a folder, or a folder or file; a link that leads nowhere is neither.

    What may be there and cannot be looked at is reported.
    """
    try:
        state = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno != errno.ELOOP:
            found.unseen[path] = f"{path}: cannot be looked into ({error.strerror})"
        return False
    return is_real_folder(state) or (is_real_file(state) and not as_folder)


def _labels(folder: Folder, said: Mapping[str, str]) -> Labels:
    of = {"config": dict(folder.config), "tag": dict(folder.tags)}
    for place, value in said.items():
        kind, _, key = place.partition(".")
        if key:
            of[kind][key] = value
    return Labels(
        workload=said.get("workload", folder.workload),
        version=said.get("version", folder.version),
        configuration=of["config"],
        tags=of["tag"],
        branch=said.get("branch"),
    )
