"""From files to a run in the database: reader -> timeline -> store, the only place where the three meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker import readers, timeline
from tracker.errors import SourceError, UsageError
from tracker.profile import Capture, Device

if TYPE_CHECKING:
    from tracker.readers import Found, ReadOptions
    from tracker.store import Store

MAX_DECOMPRESSED_BYTES: Final = 64 << 30
_VENDORS: Final = {"nvidia": "NVIDIA", "amd": "AMD", "huawei": "Huawei", "ascend": "Huawei", "intel": "Intel"}


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """What the user says about a profile that the files do not say, and how to read them.

    `device`: overrides the device read from the source. `expect_ranks`: ranks until the run counts as complete
    (default: those that came). `as_run`: all files are one run, whatever they say. `on_progress(label, done, total)`:
    bytes read of the file `label`.
    """

    commit: str | None = None
    note: str | None = None
    configuration: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    expect_ranks: int | None = None
    as_run: bool = False
    format: str | None = None
    flow_category: str | None = None
    allow_partial: bool = False
    skip_bad_rows: bool = False
    max_bytes: int = MAX_DECOMPRESSED_BYTES
    on_progress: Callable[[str, int, int], None] | None = None


@dataclass(frozen=True, slots=True)
class IngestResult:
    """One run as it stands after an ingest. `created`: new; `joined`: ranks came to a run that was there; `already`:
    nothing changed.
    """

    run_id: int
    version: str
    workload: str
    device: str
    ranks: tuple[int, ...]
    steps: int
    created: bool
    joined: bool
    already: bool
    paths: tuple[str, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """One capture on its way to a run, with the format that its file had and what its reader warned of."""

    capture: Capture
    format: str
    warnings: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the capture was read from."""
        return tuple(source.path for source in self.capture.sources)


def ingest(
    store: Store, paths: Sequence[Path], *, version: str, workload: str, options: IngestOptions | None = None
) -> list[IngestResult]:
    """Read all profiles under `paths` into `store` as runs of `version`, and say which runs they formed.

    Everything is read before anything is written; the write is one transaction for all runs of the call, so that a
    bad file leaves the database untouched. Files already in under the same version and workload change nothing; under
    another label they are a UsageError. Runs come in order of their start.
    """
    from tracker.store.save import RunRecord, save_runs

    options = options or IngestOptions()
    if not version.strip():
        raise UsageError("the version is empty", remedy="give --version LABEL, for example --version v1")
    if not workload.strip():
        raise UsageError("the workload is empty", remedy="give --workload NAME, for example --workload resnet50")
    groups = [_finish(group, options) for group in form_runs(_read_all(paths, options), as_run=options.as_run)]
    batch = [
        (
            RunRecord(
                workload=workload,
                version=version,
                commit=options.commit,
                note=options.note,
                configuration=_configuration(group, options),
                tags=dict(options.tags),
                facts=_common_facts(group),
                device=_device(group, options),
                started_at_ns=min(
                    (p.capture.started_at_ns for p in group if p.capture.started_at_ns is not None), default=None
                ),
                ranks_expected=options.expect_ranks,
                rules_version=timeline.RULES_VERSION,
            ),
            [piece.capture for piece in group],
            [piece.format for piece in group],
        )
        for group in groups
    ]
    saved = save_runs(store, batch)
    return [
        IngestResult(
            run_id=result.run_id,
            version=version,
            workload=workload,
            device=record.device.model,
            ranks=tuple(sorted(capture.rank or 0 for capture in captures)),
            steps=max((len(capture.rows.steps) for capture in captures if capture.rows), default=0),
            created=result.created,
            joined=result.joined,
            already=result.already,
            paths=tuple(dict.fromkeys(path for piece in group for path in piece.paths)),
            warnings=tuple(dict.fromkeys(text for piece in group for text in piece.warnings)),
        )
        for group, (record, captures, _), result in zip(groups, batch, saved, strict=True)
    ]


def form_runs(pieces: Sequence[Piece], *, as_run: bool = False) -> list[list[Piece]]:
    """Which captures are one run: distinct known ranks, equal world size, overlapping windows, one device model.

    Anything else (three models in a folder, two captures of one rank) is a run each. `as_run` forces one run; then
    ranks must still be distinct, and unknown ranks are numbered in order. Order: by start, then path.
    """
    ordered = sorted(pieces, key=lambda p: (p.capture.started_at_ns or 0, p.paths))
    if as_run:
        return [_number_ranks(ordered)] if ordered else []
    groups: list[list[Piece]] = []
    for piece in ordered:
        home = next((group for group in groups if all(_belong_together(member, piece) for member in group)), None)
        if home is None:
            groups.append([piece])
        else:
            home.append(piece)
    return [_number_ranks(group) for group in groups]


def _belong_together(one: Piece, other: Piece) -> bool:
    a, b = one.capture, other.capture
    if set(one.paths) & set(other.paths):  # several devices of one process
        return True
    if a.rank is None or b.rank is None or a.rank == b.rank or a.world_size != b.world_size or a.device != b.device:
        return False
    return _windows_overlap(a, b)


def _windows_overlap(a: Capture, b: Capture) -> bool:
    if None in (a.started_at_ns, b.started_at_ns, a.ended_at_ns, b.ended_at_ns):
        return True  # a clock that is not absolute contradicts nothing; the ranks already differ
    assert a.started_at_ns is not None and b.started_at_ns is not None
    assert a.ended_at_ns is not None and b.ended_at_ns is not None
    return a.started_at_ns <= b.ended_at_ns and b.started_at_ns <= a.ended_at_ns


def _number_ranks(group: Sequence[Piece]) -> list[Piece]:
    """Ranks that no source names get the free numbers in order; two captures of one rank are an error."""
    known = Counter(piece.capture.rank for piece in group if piece.capture.rank is not None)
    for rank, count in known.items():
        if count > 1:
            twice = [path for piece in group if piece.capture.rank == rank for path in piece.paths]
            raise SourceError(
                twice[0],
                f"rank {rank}",
                f"{count} captures of one rank cannot be one run (also {twice[1]})",
                remedy="leave out --as-run, so that each capture becomes a run",
            )
    free = (number for number in range(len(group) + len(known)) if number not in known)
    numbered = [
        piece if piece.capture.rank is not None else replace(piece, capture=replace(piece.capture, rank=next(free)))
        for piece in group
    ]
    return sorted(numbered, key=lambda piece: piece.capture.rank or 0)


def _read_all(paths: Sequence[Path], options: IngestOptions) -> list[Piece]:
    found: dict[Path, Found] = {}
    for path in paths:
        for item in readers.find(path, options.format):
            found.setdefault(item.path.resolve(), item)
    return [piece for item in found.values() for piece in _read(item, _read_options(item, options))]


def _read_options(found: Found, options: IngestOptions) -> ReadOptions:
    report = options.on_progress
    return readers.ReadOptions(
        flow_category=options.flow_category,
        allow_partial=options.allow_partial,
        skip_bad_rows=options.skip_bad_rows,
        max_bytes=options.max_bytes,
        progress=None if report is None else lambda done, total: report(found.path.name, done, total),
    )


def _read(found: Found, options: ReadOptions) -> list[Piece]:
    profile = readers.read(found, options)
    return [
        Piece(timeline.build(capture), profile.format, profile.warnings if number == 0 else ())
        for number, capture in enumerate(profile.captures)
    ]


def _finish(group: list[Piece], options: IngestOptions) -> list[Piece]:
    """The captures of one run with what only all of its ranks together can tell, and the device the user named."""
    captures = timeline.split_wait([piece.capture for piece in group])
    if options.device is not None:
        device = parse_device(options.device)
        captures = [replace(capture, device=device) for capture in captures]
    return [replace(piece, capture=capture) for piece, capture in zip(group, captures, strict=True)]


def parse_device(text: str) -> Device:
    """A hardware model as a user names it; a known vendor in front is told apart from the model.

    >>> parse_device("NVIDIA H100"), parse_device("cpu")
    (Device(vendor='NVIDIA', model='H100'), Device(vendor='', model='cpu'))
    """
    words = text.split()
    if not words:
        raise UsageError("the device is empty", remedy="give --device MODEL, for example --device 'NVIDIA H100'")
    vendor = _VENDORS.get(words[0].lower(), "") if len(words) > 1 else ""
    return Device(vendor, " ".join(words[1:] if vendor else words))


def _device(group: Sequence[Piece], options: IngestOptions) -> Device:
    if options.device is not None:
        return parse_device(options.device)
    models = {piece.capture.device for piece in group}
    if len(models) > 1:
        names = ", ".join(sorted(device.model for device in models))
        raise SourceError(
            group[0].paths[0],
            "",
            f"the ranks of one run ran on different devices ({names})",
            remedy="give --device MODEL",
        )
    return group[0].capture.device


def _configuration(group: Sequence[Piece], options: IngestOptions) -> dict[str, str]:
    """What must be equal to be compared: the world size where a source says it, and the user's own `--config`."""
    sizes = {piece.capture.world_size for piece in group if piece.capture.world_size is not None}
    known = {"world_size": str(sizes.pop())} if len(sizes) == 1 else {}
    return {**known, **options.configuration}


def _common_facts(group: Sequence[Piece]) -> dict[str, str]:
    """The environment of a run: one value per key; where ranks differ, their distinct values in order, joined by ` |
    `.
    """
    values: dict[str, dict[str, None]] = {}
    for piece in group:
        for key, value in piece.capture.facts.items():
            values.setdefault(key, {})[value] = None
    return {key: " | ".join(distinct) for key, distinct in sorted(values.items())}
