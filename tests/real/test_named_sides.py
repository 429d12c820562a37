"""A diff of two versions answers for itself: headline, rows, counts and exit code say one thing, for every pair of the
nightly training, with one run and with all runs of a version.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

import tracker
from tests.conftest import slow as at_night
from tests.real.conftest import nightly_versions
from tracker.compare import diff, gate_of_diff
from tracker.regressions.sides import verdicts_of_sides
from tracker.regressions.track import runs_of_track
from tracker.store import tracks as stored_tracks

VERSIONS = [f"v{number:02}" for number in range(1, 13)]
NEIGHBOURS = list(pairwise(VERSIONS))
OTHERS = [(one, other) for one in VERSIONS for other in VERSIONS if one != other and (one, other) not in NEIGHBOURS]
PAIRS = ["-".join(pair) for pair in (*NEIGHBOURS, ("v08", "v01"), ("v05", "v12"))]
PAIRS += [at_night("-".join(pair)) for pair in OTHERS if pair not in (("v08", "v01"), ("v05", "v12"))]
LEAST_STEP, LEAST_OPERATOR = 0.05, 0.03
"""Changes that make a finding, of a step timed on the host and of an operator."""
STEP_WORDS = ("DRIFT", "REGRESSED", "IMPROVED")
CLAUSES = ("; aten::", "; no operator runs", "; less time without an operator")
"""How a clause on what makes most of the change begins."""
AS_BEFORE = ("as fast", "no difference")


@pytest.fixture(scope="session")
def single_runs():
    """A database with the first run of each version."""
    with tracker.open_store("sqlite://") as store:
        for version, paths in nightly_versions().items():
            tracker.ingest(paths[:1], version=version, workload="gpt", store=store)
        yield store


def change_of_step(found):
    whole = found.explanation
    return whole.candidate_ns / whole.baseline_ns - 1


def one_sided(found):
    return [row for row in found.tables["ops"].rows("name", "status") if row[1] in ("ADDED", "REMOVED")]


@pytest.mark.parametrize("pair", PAIRS)
def test_all_runs_of_two_versions_say_one_thing(nightly, pair):
    sides = pair.split("-")
    found = diff(nightly, *sides)
    headline, verdict, code = found.headline, found.explanation.verdict, gate_of_diff(found).code
    says_nothing = any(words in headline for words in AS_BEFORE)
    assert not (says_nothing and one_sided(found)), headline
    assert not ((says_nothing or verdict == "UNCHANGED") and abs(change_of_step(found)) >= LEAST_STEP), headline
    assert (verdict == "REGRESSED") == (" slower than " in headline and " is " in headline)
    if verdict == "REGRESSED":
        assert code == 1
    elif code == 1:
        assert any("fails a gate" in remark for remark in found.explanation.remarks)
    rows = [row for row in found.tables["ops"].rows("verdict", "judged_diff", "status") if row[0] is not None]
    assert Counter(row[0] for row in rows) == dict(found.judgement.counts)
    for word, change, status in rows:
        assert not (word == "UNCHANGED" and (status != "both" or abs(change) >= LEAST_OPERATOR))
    base = found.judgement.sentences[0]
    words = (f"{sides[1]} in its history: ", f"{sides[1]} is the older side: ")
    history = [one for one in found.explanation.remarks if one.startswith(words)]
    assert len(history) == (not base.startswith("Judged as in history"))


@pytest.mark.parametrize("pair", PAIRS)
def test_single_runs_have_facts_and_no_verdict_of_the_time(single_runs, pair):
    sides = pair.split("-")
    found = diff(single_runs, *sides)
    headline, whole = found.headline, found.explanation
    assert whole.verdict in (None, "TOO_FEW_RUNS") and gate_of_diff(found).code in (1, 4)
    sentences = [*whole.remarks, *found.judgement.sentences]
    assert any(one.startswith("One run each: no verdict on the time") for one in sentences)
    status = {}
    for name, word in found.tables["ops"].rows("name", "status"):
        status.setdefault(name, set()).add(word)
    counts = [sum(own == {word} for own in status.values()) for word in ("ADDED", "REMOVED")]
    # what makes most of the change says more than how many operators are new
    names_cause = any(clause in headline for clause in CLAUSES)
    added, removed = (0, 0) if names_cause else counts
    assert f"{added} operator" in headline if added else " new" not in headline
    assert (f"{removed} operator" in headline or f"{removed} gone" in headline) if removed else "gone" not in headline
    changes = {"v05", "v06", "v08", "v10"} & set(sides)
    assert bool(one_sided(found)) == (bool(changes) and changes != {"v05", "v06"})
    assert not (
        any(words in headline for words in AS_BEFORE) and (one_sided(found) or abs(change_of_step(found)) > 0.005)
    )


@pytest.mark.parametrize("before", ["v09", "v04"])
def test_operators_that_jump_are_no_regression_of_v10(nightly, before):
    """v10 copies more; what else was slower in some runs of the versions before was so by chance."""
    ops = diff(nightly, before, "v10").ops
    assert {*ops.loc[ops["verdict"] == "REGRESSED", "name"]} <= {"aten::copy_"}


@pytest.mark.slow
def test_drift_leaves_less_than_the_limit_in_every_diff(nightly):
    """Of each version against its level, and of each pair, less than 5 % of a step that is DRIFT is left without it, in
    the direction of its change; and something is left of one that is REGRESSED or IMPROVED.
    """
    versions = {version: [*range(3 * number - 2, 3 * number + 1)] for number, version in enumerate(VERSIONS, 1)}
    sides = [(versions[one], versions[other]) for one in VERSIONS for other in VERSIONS if one != other]
    with nightly.connect() as connection:
        track_key = stored_tracks.list_tracks(connection)[0]
        judged = runs_of_track(connection, track_key).judged.values()
    levels = [tuple([*map(int, text.split())] for text in (row.base_runs, row.runs)) for row in judged if row.base_runs]
    for base, new in (*levels, *sides):
        found = verdicts_of_sides(nightly, base, new)
        assert (found.base_runs is not None) == ((base, new) in levels)
        for key, row in found.by_series.items():
            if key.kind == "run" and key.name in ("step", "e2e", "compute") and row.verdict in STEP_WORDS:
                left = ((1 + row.change) / (1 + found.shift) - 1) * (1 if row.change > 0 else -1)
                is_drift = row.verdict == "DRIFT"
                assert (left < LEAST_STEP) if is_drift else (left > 0), (base, new, key.name)
