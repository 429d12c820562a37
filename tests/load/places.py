"""Copies of a profile with one thing wrong in each, and how reading them ends."""

from __future__ import annotations

import random
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

from scripts import one_place
from tracker import readers
from tracker.errors import SourceError
from tracker.intake.pieces import IngestOptions, read_pieces


def ends_of(profile: Path, name: str, folder: Path, most: int) -> list[str]:
    """How a copy of the profile in `folder`, of the format `name`, ends with one thing wrong: `rows` or `refused`.

    At most `most` things are tried, one after the other, chosen by chance and always the same. Anything but rows or a
    SourceError is an AssertionError that says what was wrong.
    """
    copy = _copy_of(profile, folder)
    assert _outcome(copy, name) == "rows"
    wrong = _wrong_ones(copy)
    ends = []
    for file, place, value in random.Random(name).sample(wrong, min(most, len(wrong))):
        whole = file.read_bytes()
        if one_place.put(file, place, value):
            try:
                ends.append(_outcome(copy, name))
            except Exception as error:
                raise AssertionError(f"{file.name} {place}: {value!r}") from error
        file.write_bytes(whole)
    return ends


def _copy_of(profile: Path, folder: Path) -> Path:
    folder.mkdir()
    target = folder / profile.name
    if profile.is_dir():
        shutil.copytree(profile, target)
    else:
        shutil.copy(profile, target)
    return target


def _files_of(profile: Path) -> list[Path]:
    return sorted(path for path in profile.rglob("*") if path.is_file()) if profile.is_dir() else [profile]


def _outcome(profile: Path, name: str) -> str:
    """How reading ends: `rows`, or the SourceError, of one line, with a problem and where it is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of numpy: a number beyond 64 bits
            read_pieces(readers.Found(profile, name), IngestOptions())
    except SourceError as error:
        assert error.path and error.problem and "\n" not in str(error)
        return "refused"
    return "rows"


def _wrong_ones(profile: Path) -> list[tuple[Path, one_place.Place, Any]]:
    """(file, place, value) of all that can be wrong; of places that are alike one stands for all."""
    # step_trace_0_2_1.json is as step_trace_1_2_2.json
    files = {re.sub(r"\d+", "#", file.name): file for file in reversed(_files_of(profile))}.values()
    wrong = ((file, place) for file in files for place in one_place.places(file, distinct=True))
    return [(file, place, value) for file, place in wrong for value in one_place.values(file)]
