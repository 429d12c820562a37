"""The laws of numbers and verdicts over every diff of the nightly training."""

from __future__ import annotations

import pytest

from tests.one_base import check_diffs
from tests.real.conftest import nightly_versions
from tracker.compare import diffs


@pytest.mark.slow
def test_every_nightly_diff_shows_the_numbers_of_its_verdicts(nightly):
    assert check_diffs(nightly, list(nightly_versions())) > 40


def test_a_peak_before_is_one_that_a_run_had(nightly):
    """v08 holds 66.06 MiB where v07 held 45.81; v05 and v06, whose 47.52 MiB were another level, are no part of it."""
    (found,) = diffs(nightly, ["v08"])
    peak = found.overall.set_index("metric").loc["peak_allocated_bytes"]
    assert [round(peak[f"{side}_value"] / 2**20, 2) for side in ("baseline", "candidate")] == [45.81, 66.06]
