"""What is stored of a run beside its captures: from what its files state and what the user says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tracker import timeline
from tracker.errors import SourceError, UsageError
from tracker.intake.pieces import IngestOptions, Piece
from tracker.profile import Device

if TYPE_CHECKING:
    from tracker.store import RunRecord

HOW_TO_LABEL: Final = {
    "version": "give --version LABEL, for example --version v1",
    "workload": "give --workload NAME, for example --workload resnet50",
}
_VENDORS: Final = {"nvidia": "NVIDIA", "amd": "AMD", "huawei": "Huawei", "ascend": "Huawei", "intel": "Intel"}


def record_of(group: Sequence[Piece], version: str | None, workload: str | None, options: IngestOptions) -> RunRecord:
    """The record of the run that `group` is; a UsageError where nobody says its version or workload."""
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
    raise UsageError(problem, remedy=HOW_TO_LABEL[name])


def date_of(group: Sequence[Piece]) -> str:
    """The date of the version that the files state, '' for none."""
    return min(piece.capture.labels.get("date", "") for piece in group)


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
