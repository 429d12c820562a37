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

_HOW_TO_LABEL: Final = {
    "version": "give --version LABEL, for example --version v1",
    "workload": "give --workload NAME, for example --workload resnet50",
}
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
    formats: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    captures: tuple[Read, ...] = ()


@dataclass(frozen=True, slots=True)
class Read:
    """One capture of an ingest: its rank, the file or folder that holds it, and what its reader warned of."""

    rank: int
    path: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """One capture on its way to a run, with the format that its file had and what its reader warned of.

    `path`: the file or folder that was claimed for it, '' where only its sources are known.
    """

    capture: Capture
    format: str
    warnings: tuple[str, ...]
    path: str = ""

    @property
    def place(self) -> str:
        """Where the capture lies: its folder, or its file."""
        return self.path or self.paths[0]

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the capture was read from."""
        return tuple(source.path for source in self.capture.sources)


def ingest(
    store: Store,
    paths: Sequence[Path],
    *,
    version: str | None = None,
    workload: str | None = None,
    options: IngestOptions | None = None,
) -> list[IngestResult]:
    """Read all profiles under `paths` into `store` as runs of `version`, and say which runs they formed.

    Without `version` or `workload` the files must state them; files that state different ones are different runs.
    Everything is read before anything is written; the write is one transaction for all runs of the call, so that a
    bad file leaves the database untouched. Files already in under the same version and workload change nothing; under
    another label they are a UsageError. Runs come in order of the dates of their versions where files state these, then
    of their start. Then the versions that they are of are judged, each in a transaction of its own.
    """
    from tracker import judgement
    from tracker.store.save import save_runs

    options = options or IngestOptions()
    for name, value in (("version", version), ("workload", workload)):
        if value is not None and not value.strip():
            raise UsageError(f"the {name} is empty", remedy=_HOW_TO_LABEL[name])
    pieces = _read_all(paths, options)
    groups = [_finish(group, options) for group in form_runs(pieces, as_run=options.as_run)]
    if version is None:
        groups.sort(key=_date)
    batch = [
        (
            _record(group, version, workload, options),
            [piece.capture for piece in group],
            [piece.format for piece in group],
        )
        for group in groups
    ]
    done = save_runs(store, batch)
    changed = [saved.run_id for saved in done if not saved.already]
    if changed:
        judgement.update(store, judgement.lines_of(store, changed))
    results = [
        _result(group, record, saved, options) for group, (record, _, _), saved in zip(groups, batch, done, strict=True)
    ]
    if results and (warning := formats_beside(pieces)):
        results[0] = replace(results[0], warnings=(warning, *results[0].warnings))
    return results


def formats_beside(pieces: Sequence[Piece]) -> str:
    """A warning where files of several formats lie in one folder: often they tell of one run; "" where none do."""
    formats: dict[Path, set[str]] = {}
    for piece in pieces:
        formats.setdefault(Path(piece.paths[0]).parent, set()).add(piece.format)
    several = {folder: sorted(names) for folder, names in formats.items() if len(names) > 1}
    if not several:
        return ""
    folder, names = next(iter(several.items()))
    more = f" and {len(several) - 1} more" if len(several) > 1 else ""
    return (
        f"{folder}{more}: files of {', '.join(names[:-1])} and {names[-1]} lie beside each other, and each becomes a "
        f"run of its own; one training that they all tell of counts as often: to take one of them, say --input-format "
        f"{names[-1]}"
    )


def _record(group: Sequence[Piece], version: str | None, workload: str | None, options: IngestOptions) -> RunRecord:
    from tracker.store.save import RunRecord

    # the commit that files state is that of the version they state
    commits = {piece.capture.labels.get("commit") for piece in group} if version is None else set()

    starts = [piece.capture.started_at_ns for piece in group if piece.capture.started_at_ns is not None]
    return RunRecord(
        workload=workload if workload is not None else _stated(group, "workload"),
        version=version if version is not None else _stated(group, "version"),
        commit=options.commit or (commits.pop() if len(commits) == 1 else None),
        note=options.note,
        configuration=_configuration(group, options),
        tags=dict(options.tags),
        facts=_common_facts(group),
        device=_device(group, options),
        started_at_ns=min(starts, default=None),
        ranks_expected=options.expect_ranks,
        rules_version=timeline.RULES_VERSION,
    )


def _stated(group: Sequence[Piece], name: str) -> str:
    """The version or workload that the files of a run state; a UsageError where they state none, or several."""
    said = {piece.capture.labels.get(name): piece.paths[0] for piece in group}
    label = next((label for label in said if label), None)
    if label is not None and len(said) == 1:
        return label
    silent = said.get(None, group[0].paths[0])
    problem = f"{silent} states no {name}"
    if label is not None and None not in said:
        problem = f"the files of one run state different {name}s ({', '.join(sorted(filter(None, said)))})"
    raise UsageError(problem, remedy=_HOW_TO_LABEL[name])


def _date(group: Sequence[Piece]) -> str:
    """The date of the version that the files state, '' for none."""
    return min(piece.capture.labels.get("date", "") for piece in group)


def _steps(capture: Capture) -> int:
    """How many steps were profiled; a row may stand for several."""
    return sum(row.steps for row in capture.rows.steps) if capture.rows is not None else 0


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
        steps=max((_steps(piece.capture) for piece in group), default=0),
        created=saved.created,
        joined=saved.joined,
        already=saved.already,
        paths=tuple(dict.fromkeys(path for piece in group for path in piece.paths)),
        formats=tuple(dict.fromkeys(piece.format for piece in group)),
        warnings=tuple(dict.fromkeys(warnings)),
        captures=tuple(Read(piece.capture.rank or 0, piece.place, piece.warnings) for piece in group),
    )


def form_runs(pieces: Sequence[Piece], *, as_run: bool = False) -> list[list[Piece]]:
    """Which captures are one run: distinct known ranks, equal world size, overlapping windows, one device model, and
    the same labels and configuration where files state these.

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
    return why_apart(one, other) is None


def why_apart(one: Sequence[Piece], other: Sequence[Piece]) -> str | None:
    """Why the captures of two files are not ranks of one run, in a few words; None where they are.

    The first capture of a file is the one that its rank stands for.
    """
    a, b = one[0].capture, other[0].capture
    ranks = _known_ranks(one), _known_ranks(other)
    if not ranks[0] or not ranks[1]:
        return "a file names no rank"
    if set(ranks[0]) & set(ranks[1]):
        return "the same rank"
    if a.labels != b.labels or a.configuration != b.configuration:
        return "other labels"
    if a.world_size != b.world_size:
        return "another world size"
    if a.device != b.device:
        return "another device"
    return None if _windows_overlap(a, b) else "not at the same time"


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
    return [piece for item in found.values() for piece in read_pieces(item, options)]


def read_pieces(found: Found, options: IngestOptions) -> list[Piece]:
    """The captures of one claimed file or folder, with rows; a SourceError where it cannot be read."""
    return _read(found, _read_options(found, options))


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
        Piece(timeline.build(capture), profile.format, profile.warnings if number == 0 else (), str(found.path))
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
    """What must be equal to be compared: the world size where a source says it, what else all its files say alike, and
    over these the user's own `--config`.
    """
    sizes = {piece.capture.world_size for piece in group if piece.capture.world_size is not None}
    known = {"world_size": str(sizes.pop())} if len(sizes) == 1 else {}
    first = group[0].capture.configuration
    stated = {
        key: value
        for key, value in first.items()
        if all(piece.capture.configuration.get(key) == value for piece in group)
    }
    return {**known, **stated, **options.configuration}


def _common_facts(group: Sequence[Piece]) -> dict[str, str]:
    """The environment of a run: one value per key; where ranks differ, their distinct values in order, joined by ` |
    `.
    """
    values: dict[str, dict[str, None]] = {}
    for piece in group:
        for key, value in piece.capture.facts.items():
            values.setdefault(key, {})[value] = None
    return {key: " | ".join(distinct) for key, distinct in sorted(values.items())}
