"""Which captures are one: the same process, start and events, whatever file holds them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from msgspec.structs import replace

from tracker.intake.pieces import Piece


def leave_out_copies(files: Sequence[list[Piece]]) -> list[list[Piece]]:
    """Return the files that are left when each capture counts once; the first piece of a file that stays says so.

    A file is left out where another one of the same labels holds the same captures (exported again, saved with other
    ends of lines), or the same and more (it was copied while it was still written).
    """
    left: list[list[Piece]] = []
    notes: dict[int, list[str]] = {}
    # thousands of files are never compared with each other: only captures with the same first step can be one
    alike: dict[Hashable, list[int]] = {}
    same: dict[Hashable, int] = {}
    for file in sorted(files, key=lambda file: (-_number_of_steps(file), file[0].place)):
        fingerprints = tuple(piece.fingerprint for piece in file)
        if not all(fingerprint.process for fingerprint in fingerprints):
            left.append(list(file))
            continue
        key = (_filed_as(file[0]), tuple(fingerprint.begin for fingerprint in fingerprints))
        whole = _find_whole(file, ((place, left[place]) for place in alike.get(key, ())))
        place = same.get((key, fingerprints)) if whole is None else whole
        if place is not None and _digests_of(file) != _digests_of(left[place]):
            how = "the beginning of" if whole is not None else "the same capture as"
            notes.setdefault(place, []).append(f"{file[0].place} is {how} {left[place][0].place}: it counts once")
            continue
        # the very same file, one that came twice, the store takes once
        if place is None:
            same[key, fingerprints] = len(left)
            alike.setdefault(key, []).append(len(left))
        left.append(list(file))
    for place, said in notes.items():
        first = left[place][0]
        left[place][0] = replace(first, warnings=(*first.warnings, *said))
    return left


def _number_of_steps(file: Sequence[Piece]) -> int:
    return sum(len(piece.fingerprint.steps) for piece in file)


def _find_whole(file: Sequence[Piece], others: Iterable[tuple[int, Sequence[Piece]]]) -> int | None:
    """Return the place of the first of the files, the longest first, that a file is the beginning of; None for none."""
    for place, other in others:
        if _number_of_steps(other) <= _number_of_steps(file):
            return None
        if _is_beginning_of(file, other):
            return place
    return None


def _is_beginning_of(file: Sequence[Piece], other: Sequence[Piece]) -> bool:
    pairs = zip(file, other, strict=True)
    return all(one.fingerprint.begins(two.fingerprint) for one, two in pairs)


def _digests_of(file: Sequence[Piece]) -> set[bytes]:
    return {source.digest for source in file[0].capture.sources}


def _filed_as(piece: Piece) -> Hashable:
    """Return what decides the labels of a piece, so that copies with other labels are refused later and not dropped."""
    said = piece.told
    configuration, labels = sorted(said.configuration.items()), sorted(piece.capture.labels.items())
    return said.version, said.workload, tuple(configuration), tuple(labels), piece.capture.device
