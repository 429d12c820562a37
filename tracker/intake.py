"""From files to a run in the database: reader -> timeline -> store, the only place where the three meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker import config, readers, timeline
from tracker.errors import SourceError, UsageError
from tracker.profile import Capture, Device

if TYPE_CHECKING:
    from tracker.readers import Found, ReadOptions
    from tracker.store import RunRecord, SavedRun, Store

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
    max_bytes: int = config.MAX_BYTES
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
    from tracker.store.save import save_runs

    options = options or IngestOptions()
    if not version.strip():
        raise UsageError("the version is empty", remedy="give --version LABEL, for example --version v1")
    if not workload.strip():
        raise UsageError("the workload is empty", remedy="give --workload NAME, for example --workload resnet50")
    groups = [_finish(group, options) for group in form_runs(_read_all(paths, options), as_run=options.as_run)]
    batch = [
        (
            _record(group, version, workload, options),
            [piece.capture for piece in group],
            [piece.format for piece in group],
        )
        for group in groups
    ]
    return [
        _result(group, record, saved, options)
        for group, (record, _, _), saved in zip(groups, batch, save_runs(store, batch), strict=True)
    ]


def _record(group: Sequence[Piece], version: str, workload: str, options: IngestOptions) -> RunRecord:
    from tracker.store.save import RunRecord

    starts = [piece.capture.started_at_ns for piece in group if piece.capture.started_at_ns is not None]
    return RunRecord(
        workload=workload,
        version=version,
        commit=options.commit,
        note=options.note,
        configuration=_configuration(group, options),
        tags=dict(options.tags),
        facts=_common_facts(group),
        device=_device(group, options),
        started_at_ns=min(starts, default=None),
        ranks_expected=options.expect_ranks,
        rules_version=timeline.RULES_VERSION,
    )


def _result(group: Sequence[Piece], record: RunRecord, saved: SavedRun, options: IngestOptions) -> IngestResult:
    warnings = [text for piece in group for text in piece.warnings]
    given = {
        "--device": options.device, "--config": options.configuration, "--tag": options.tags,
        "--note": options.note, "--commit": options.commit, "--expect-ranks": options.expect_ranks,
    }  # fmt: skip
    unused = [name for name, value in given.items() if value]
    if saved.already and unused:
        warnings.append(f"already in, so {', '.join(unused)} changed nothing; tracker runs edit and tag do")
    return IngestResult(
        run_id=saved.run_id,
        version=record.version,
        workload=record.workload,
        device=f"{saved.device.vendor} {saved.device.model}".strip(),
        ranks=saved.ranks,
        steps=max((len(piece.capture.rows.steps) for piece in group if piece.capture.rows), default=0),
        created=saved.created,
        joined=saved.joined,
        already=saved.already,
        paths=tuple(dict.fromkeys(path for piece in group for path in piece.paths)),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def form_runs(pieces: Sequence[Piece], *, as_run: bool = False) -> list[list[Piece]]:
    """Which captures are one run: distinct known ranks, equal world size, overlapping windows, one device model.

    Anything else (three models in a folder, two captures of one rank) is a run each. The captures of one file are never
    parted. `as_run` forces one run; then ranks must still be distinct, and files without a rank get the free ones in
    order. Order: by start, then path; within a run by rank.
    """
    files: dict[tuple[str, ...], list[Piece]] = {}
    for piece in pieces:
        files.setdefault(piece.paths, []).append(piece)
    ordered = sorted(files.values(), key=lambda file: (file[0].capture.started_at_ns or 0, file[0].paths))
    if as_run:
        return [_number_ranks(ordered)] if ordered else []
    groups: list[list[list[Piece]]] = []
    for file in ordered:
        home = next((group for group in groups if all(_belong_together(member, file) for member in group)), None)
        if home is None:
            groups.append([file])
        else:
            home.append(file)
    return [_number_ranks(group) for group in groups]


def _known_ranks(file: Sequence[Piece]) -> list[int]:
    return [piece.capture.rank for piece in file if piece.capture.rank is not None]


def _belong_together(one: Sequence[Piece], other: Sequence[Piece]) -> bool:
    """Whether two files are ranks of one run; the first capture of a file is the one that its rank stands for."""
    a, b = one[0].capture, other[0].capture
    ranks = _known_ranks(one), _known_ranks(other)
    if not ranks[0] or not ranks[1] or set(ranks[0]) & set(ranks[1]):
        return False
    return a.world_size == b.world_size and a.device == b.device and _windows_overlap(a, b)


def _windows_overlap(a: Capture, b: Capture) -> bool:
    """Whether the captures ran at the same time; a clock that is not absolute contradicts nothing."""
    starts, ends = (a.started_at_ns, b.started_at_ns), (a.ended_at_ns, b.ended_at_ns)
    if starts[0] is None or starts[1] is None or ends[0] is None or ends[1] is None:
        return True
    return starts[0] <= ends[1] and starts[1] <= ends[0]


def _number_ranks(files: Sequence[Sequence[Piece]]) -> list[Piece]:
    """Every capture of a run with a rank: a file that names none gets the first free one.

    The i-th further device of a process of rank r becomes r + i x world size: no rank of the job, and the same whether
    the ranks come together or one after the other. Two captures of one rank are an error.
    """
    known = [rank for file in files for rank in _known_ranks(file)]
    _refuse_doubles(files, known)
    free = (number for number in range(len(files) + len(known)) if number not in known)
    sizes = [piece.capture.world_size or 0 for file in files for piece in file]
    leads = [(_known_ranks(file) or [next(free)])[0] for file in files]
    world = max([*sizes, *(rank + 1 for rank in [*known, *leads])])
    numbered = []
    for file, lead in zip(files, leads, strict=True):
        numbers = (lead + further * world for further in range(0 if not _known_ranks(file) else 1, len(file) + 1))
        numbered += [
            piece
            if piece.capture.rank is not None
            else replace(piece, capture=replace(piece.capture, rank=next(numbers)))
            for piece in file
        ]
    return sorted(numbered, key=lambda piece: piece.capture.rank or 0)


def _refuse_doubles(files: Sequence[Sequence[Piece]], known: Sequence[int]) -> None:
    for rank, count in Counter(known).items():
        if count > 1:
            twice = [path for file in files if rank in _known_ranks(file) for path in file[0].paths]
            raise SourceError(
                twice[0],
                f"rank {rank}",
                f"{count} captures of one rank cannot be one run (also {twice[-1]})",
                remedy="leave out --as-run, so that each capture becomes a run",
            )


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
