"""One cell, value or number of a profile that is not what it should be: a run or one clear error, wherever it stands.

NULL, text where a number is due, a number below zero or beyond all dates, what is no number: a hand-written profile of
each format, with one place wrong at a time. Some of them are tried here, and all in the slow test.
"""

from __future__ import annotations

import random
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

from scripts import one_place
from tracker import readers
from tracker.errors import SourceError
from tracker.intake.pieces import IngestOptions, read_pieces

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
FORMATS = [name for name in readers.NAMES if name != "pack"]  # a pack has a digest of its own


def copy_of(profile, folder):
    folder.mkdir()
    target = folder / profile.name
    if profile.is_dir():
        shutil.copytree(profile, target)
    else:
        shutil.copy(profile, target)
    return target


def files_of(profile):
    return sorted(path for path in profile.rglob("*") if path.is_file()) if profile.is_dir() else [profile]


def outcome(profile, name):
    """How reading ends: `rows`, or the SourceError, of one line, with a problem and where it is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of numpy: a number beyond 64 bits
            read_pieces(readers.Found(profile, name), IngestOptions())
    except SourceError as error:
        assert error.path and error.problem and "\n" not in str(error)
        return "refused"
    return "rows"


def wrong_ones(profile: Path) -> list[tuple[Path, one_place.Place, Any]]:
    """(file, place, value) of all that can be wrong; of places that are alike one stands for all."""
    found, seen = [], set()
    for file in files_of(profile):
        for place in one_place.places(file):
            # step_trace_0_2_1.json is as step_trace_1_2_2.json
            kind = re.sub(r"\d+", "#", file.name), one_place.kind(file, place)
            if kind not in seen:
                seen.add(kind)
                found += [(file, place, value) for value in one_place.values(file)]
    return found


def ends_of(name, tmp_path, most):
    """How the profiles of a format end with one thing wrong: `most` things of each, in an order of chance."""
    ends = []
    for number, found in enumerate(readers.find(DATA / name, name)):
        profile = copy_of(found.path, tmp_path / str(number))
        assert outcome(profile, name) == "rows"
        wrong = wrong_ones(profile)
        for file, place, value in random.Random(name).sample(wrong, min(most, len(wrong))):
            whole = file.read_bytes()
            if one_place.put(file, place, value):
                try:
                    ends.append(outcome(profile, name))
                except Exception as error:
                    raise AssertionError(f"{file.name} {place}: {value!r}") from error
            file.write_bytes(whole)
    return ends


@pytest.mark.parametrize("name", FORMATS)
def test_a_wrong_place_is_a_run_or_an_error(tmp_path, name):
    assert ends_of(name, tmp_path, 40).count("rows") > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_everything_that_can_be_wrong_at_a_place_is_a_run_or_an_error(tmp_path, name):
    ends = ends_of(name, tmp_path, 4000)
    assert len(ends) > 400
    assert set(ends) == ({"rows"} if name == "paddle_log" else {"rows", "refused"})
