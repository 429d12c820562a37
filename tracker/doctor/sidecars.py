"""What is said of profiles beside their traces, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tracker.errors import SourceError
from tracker.hooks.sidecar import sidecar_of
from tracker.intake import Piece, sidecar
from tracker.profile import Capture
from tracker.units import counted

_TEXTS: Final = ("version", "workload", "commit", "device", "note")


def labelled(piece: Piece) -> Capture:
    """The capture with the labels and the configuration that an ingest would file it under."""
    told = piece.told
    said = {name: text for name in ("version", "workload", "commit") if (text := getattr(told, name)) is not None}
    configuration = {**piece.capture.configuration, **told.configuration}
    return replace(piece.capture, labels={**piece.capture.labels, **said}, configuration=configuration)


def notes(groups: Sequence[Sequence[Piece]], found: Sequence[Path], broken: Sequence[Path]) -> Iterator[str]:
    """That sidecars are there and what they say; which ranks of a run contradict each other; which stand alone.

    `groups`: the runs; `found`: the sidecars that lie beside files; `broken`: profiles that cannot be read.
    """
    alike: dict[str, list[Piece]] = {}
    for piece in (piece for group in groups for piece in group):
        if piece.said is not None and piece.place not in (other.place for other in alike.get(_words(piece.said), ())):
            alike.setdefault(_words(piece.said), []).append(piece)
    for words, pieces in alike.items():
        more = f" and {counted(len(pieces) - 1, 'other')}" if len(pieces) > 1 else ""
        says = "say" if len(pieces) > 1 else "says"
        yield f"{_sidecar(pieces[0])}{more} {says} of the profile: {words}"
    packed = {piece.place: _words(piece.asked) for group in groups for piece in group if piece.asked != sidecar.NOTHING}
    for words in dict.fromkeys(packed.values()):
        places = [place for place, other in packed.items() if other == words]
        more = f" and {counted(len(places) - 1, 'other')}" if len(places) > 1 else ""
        yield f"{places[0]}{more}, as packed: {words}"
    for group in groups:
        try:
            sidecar.agreed({piece.place: piece.said for piece in group if piece.said is not None})
        except SourceError as error:
            yield str(error)
    told = {sidecar_of(piece.place) for group in groups for piece in group}
    told |= {sidecar_of(str(path)) for path in broken}
    for path in found:
        if str(path) not in told:
            yield f"{path} tells of a profile that is not there"


def _sidecar(piece: Piece) -> str:
    """The sidecar of a profile, or what stands for it in a pack."""
    path = sidecar.sidecar_of(Path(piece.place))
    return f"the sidecar in {piece.place}" if path is None else str(path)


def _words(said: sidecar.Sidecar) -> str:
    """What a sidecar says, of its facts only how many, without what differs from rank to rank."""
    texts = [f"{name} {text}" for name in _TEXTS if (text := getattr(said, name)) is not None]
    pairs = [
        f"{title} {' '.join(f'{key}={value}' for key, value in values.items())}"
        for title, values in (("configuration", said.configuration), ("tags", said.tags))
        if values
    ]
    ranks = [f"{said.expect_ranks} ranks expected"] if said.expect_ranks else []
    facts = [counted(len(said.facts), "fact") + " of the environment"] if said.facts else []
    return ", ".join([*texts, *pairs, *ranks, *facts]) or "nothing"
