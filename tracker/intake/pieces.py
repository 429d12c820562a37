"""The captures of the files that an ingest was given, and what its user said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from tracker import config, readers, timeline
from tracker.errors import SourceError
from tracker.intake import sidecar
from tracker.intake.devices import parse_device, spelled
from tracker.intake.fingerprints import Fingerprint, fingerprint_of
from tracker.intake.sidecar import NOTHING, Sidecar
from tracker.limits.deadline import READ_S
from tracker.limits.processes import processors
from tracker.limits.rows import REMEDY as ROWS_REMEDY
from tracker.limits.rows import TooManyRowsError
from tracker.limits.touch import touch
from tracker.profile import UNKNOWN_DEVICE, Capture
from tracker.profile.traits import CaptureWork, Traits, traits_of, work_of
from tracker.timeline.windows import overlap_warning

if TYPE_CHECKING:
    from tracker.errors import TrackerError
    from tracker.profile import Packed, Profile
    from tracker.readers import Found, ReadOptions
    from tracker.store.run_record import ExperimentRun

    ReadWith = Callable[[Sequence[Found], "IngestOptions"], Iterable[list["Piece"] | TrackerError]]


class IngestOptions(Struct, frozen=True):
    """What the user says about a profile that the files do not say, and how to read them.

    `device`: overrides the device read from the source. `expect_ranks`: ranks until the run counts as complete
    (default: those that came). `as_run`: all files are one run, whatever they say. `otherwise`: what holds where
    neither these options nor the sidecar of a profile say something. `on_progress(label, done, total)`: bytes read of
    the file `label`, `12 of 192: rank3.json` where there are several; then `writing`, `judging` and `looking for
    advice`, of which `total` is 0: nobody knows how long these take. `loaders`: what the ranges of a team's own data
    loaders hold in their names. `one_process`: no other process is asked to read.
    `threads`: how many may decode one profile at once; 0: one for each processor. `read_with`: reads the
    profiles, somewhere else or at once, in their order; None: on this machine. `read_all_with`: finds and
    reads the profiles, as `at_once.read_all`, in another process. `judge`: False where the caller judges
    the runs of many ingests at once. `keep_going`: profiles that cannot be read are left out and named in the result.
    `branch`: that was trained, "" for the main line, None where nobody says; `main_branch`: what the main line is
    called, None for what the sidecars say, else main or master. `places`: what a layout of folders says of the profiles
    at or below a path; what lies beside a profile goes before it. With places, a path without any profile is not
    recognised, and no error. `as_stored`: a profile that is in the database keeps the labels that it has there,
    whatever its labels are now. `again`: what is in the database is read again and replaced. `ranks_handed_over`: how
    many ranks of the job of these profiles have handed over one, None where nobody counted them. `experiment`: the
    place of the run in an experiment, None for a run that is followed over versions.
    """

    branch: str | None = None
    main_branch: str | None = None
    commit: str | None = None
    note: str | None = None
    configuration: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    expect_ranks: int | None = None
    as_run: bool = False
    otherwise: Sidecar = NOTHING
    format: str | None = None
    flow_category: str | None = None
    allow_partial: bool = False
    skip_bad_rows: bool = False
    max_bytes: int = config.MAX_BYTES
    loaders: tuple[str, ...] = ()
    one_process: bool = False
    threads: int = 0
    on_progress: Callable[[str, int, int], None] | None = None
    read_with: ReadWith | None = None
    read_all_with: Callable[[list[Path], IngestOptions], Any] | None = None
    judge: bool = True
    keep_going: bool = False
    places: Mapping[Path, Sidecar] = field(default_factory=dict)
    as_stored: bool = False
    again: bool = False
    ranks_handed_over: int | None = None
    experiment: ExperimentRun | None = None


class Piece(Struct, frozen=True):
    """One capture on its way to a run, with the format that its file had and what its reader warned of.

    `path`: the file or folder that was claimed for it, '' where only its sources are known. `said`: by its sidecar,
    None where it has none; what that adds to the capture is in there already. `asked`: by the user when it was packed,
    as by options of the ingest. `rules_version`: of the naming and category rules that its rows were made with.
    `fingerprint`: what tells it from all other captures, whatever file holds it. `work`: what its rows say of its job,
    None where it is to be looked up in them.
    """

    capture: Capture
    format: str
    warnings: tuple[str, ...]
    path: str = ""
    said: Sidecar | None = None
    asked: Sidecar = NOTHING
    rules_version: int = timeline.RULES_VERSION
    fingerprint: Fingerprint = Fingerprint()
    work: CaptureWork | None = None

    @property
    def told(self) -> Sidecar:
        """What is said of the capture beside it, by whomever."""
        return sidecar.over(self.asked, self.said or NOTHING)

    @property
    def place(self) -> str:
        """Where the capture lies: its folder, or its file."""
        return self.path or self.paths[0]

    @property
    def traits(self) -> Traits:
        """What the capture says of the job that it is of."""
        work = work_of(self.capture) if self.work is None else self.work
        return traits_of(self.capture, self.place, work)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the capture was read from."""
        return tuple(source.path for source in self.capture.sources)


def read_pieces(found: Found, options: IngestOptions) -> list[Piece]:
    """The captures of one claimed file or folder, with rows and what its sidecar adds; a SourceError where it cannot be
    read. A pack gives those of all profiles in it; a sidecar beside it goes before theirs.
    """
    with touch(found.path, READ_S):
        return _read_pieces(found, options)


def _read_pieces(found: Found, options: IngestOptions) -> list[Piece]:
    path = sidecar.sidecar_of(found.path)
    beside, warnings = (None, ()) if path is None else sidecar.read(path)
    profile = readers.read(found, _read_options(found, options))
    if not profile.packed:
        return pieces_of(profile, str(found.path), options, said=beside, warnings=warnings)
    # where a profile lay when it was packed tells it from the other profiles of the pack
    places = [f"{found.path}/{one.profile.path.lstrip('/')}" for one in profile.packed]
    unpacked = [
        unpacked_pieces(one, place, found.path, options, beside)
        for one, place in zip(profile.packed, places, strict=True)
    ]
    first, *others = (piece for pieces in unpacked for piece in pieces)
    return [replace(first, warnings=(*first.warnings, *warnings)), *others]


def unpacked_pieces(
    packed: Packed, place: str, pack: Path, options: IngestOptions, beside: Sidecar | None = None
) -> list[Piece]:
    """The captures of one profile of `pack`, as `read_pieces` gave them where it was packed, but that they lie at
    `place`.
    """
    said = sidecar.parsed(packed.said, pack)[0] if packed.said else None
    asked = sidecar.parsed(packed.asked, pack)[0] if packed.asked else NOTHING
    said = said if beside is None else sidecar.over(beside, said or NOTHING)
    pieces = pieces_of(packed.profile, place, options, said=said)
    return [replace(piece, asked=asked, rules_version=packed.rules_version) for piece in pieces]


def pieces_of(
    profile: Profile, place: str, options: IngestOptions, *, said: Sidecar | None, warnings: Sequence[str] = ()
) -> list[Piece]:
    """The captures of a profile that lies at `place`, with rows; the first one bears the warnings of the profile."""
    try:
        threads = options.threads or processors()
        captures = [timeline.build(capture, threads, options.loaders) for capture in profile.captures]
    except TooManyRowsError as error:
        raise SourceError(place, "", str(error), remedy=ROWS_REMEDY) from error
    except OverflowError as error:
        raise SourceError(place, "", str(error), remedy="export the profile again") from error
    pieces = []
    for number, (read, built) in enumerate(zip(profile.captures, captures, strict=True)):
        is_first = number == 0
        capture = _with(built, said or NOTHING, options.otherwise, is_first=is_first)
        fingerprint = fingerprint_of(capture, profile.format)
        pieces.append(
            Piece(
                replace(capture, identity=fingerprint.digest()),
                profile.format,
                (
                    *(profile.warnings if is_first else ()),
                    *_about_markers(read),
                    *(warnings if is_first else ()),
                ),
                place,
                said,
                fingerprint=fingerprint,
                # as the source says it, before a sidecar names the device
                work=work_of(built),
            )
        )
    return pieces


def _about_markers(capture: Capture) -> tuple[str, ...]:
    return () if capture.events is None else tuple(filter(None, [overlap_warning(capture.events.markers)]))


def _with(capture: Capture, said: Sidecar, otherwise: Sidecar, *, is_first: bool) -> Capture:
    """`capture`, and where it leaves something out what the sidecar says, then what holds otherwise.

    A rank is that of the process, so of the first capture of its file.
    """
    device = said.device or otherwise.device
    is_named = capture.device.model != UNKNOWN_DEVICE.model
    rank = said.rank if said.rank is not None else otherwise.rank
    return replace(
        capture,
        rank=rank if capture.rank is None and is_first else capture.rank,
        world_size=capture.world_size or said.world_size or otherwise.world_size,
        host=capture.host or said.host or otherwise.host or "",
        device=parse_device(device, capture.device) if device and not is_named else spelled(capture.device),
        facts={**otherwise.facts, **said.facts, **capture.facts},
    )


def _read_options(found: Found, options: IngestOptions) -> ReadOptions:
    report = options.on_progress
    return readers.ReadOptions(
        flow_category=options.flow_category,
        allow_partial=options.allow_partial,
        skip_bad_rows=options.skip_bad_rows,
        max_bytes=options.max_bytes,
        threads=options.threads or processors(),
        is_named=options.format is not None,
        progress=None if report is None else lambda done, total: report(found.path.name, done, total),
    )
