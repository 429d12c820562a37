"""The judge audits itself: how many series moved of late, and how many of them in one version."""

from __future__ import annotations

from tests.regressions.made import runs
from tracker.regressions.judgement import tracks_of, update
from tracker.watch.status import status

NOW_NS = 1_800_000_000 * 10**9


def test_status_says_how_much_moved_in_one_version(store):
    slow, both = {"op01": 1.5}, {"op01": 1.5, "op02": 0.5}
    for number, changed in enumerate(({}, {}, slow, slow, both, both)):
        runs(store, f"v{number + 1}", changed, start=3 * number)
    update(store, tracks_of(store))
    audit = status(store, now_ns=NOW_NS).judge
    # each operator by itself and by its name; the step moved by less than its limit
    assert (audit.versions, audit.slower, audit.faster) == (6, 2, 2)
    assert audit.in_one_version == 2
    assert audit.sentence.startswith("6 versions: 2 series became slower and 2 faster, 50 % of them in v")


def test_empty_database_has_nothing_to_say(store):
    assert status(store, now_ns=NOW_NS).judge.sentence == ""
