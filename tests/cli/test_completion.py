"""What a shell offers behind a word: names that the database holds."""

from __future__ import annotations

import pytest

from tests.regressions.made import runs
from tracker.regressions.judgement import tracks_of, update
from tracker.store.names import names_beginning_with


@pytest.fixture
def complete(tracker, monkeypatch, db):
    """Asks as bash does: complete("diff v0") offers what may stand behind `v0`."""

    def ask(line: str, database=db) -> list[str]:
        words = f"tracker {line}"
        monkeypatch.setenv("TRACKER_DB", str(database))
        monkeypatch.setenv("_TRACKER_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - (0 if words.endswith(" ") else 1)))
        done = tracker()
        assert (done.code, done.err) == (0, "")
        return done.out.split()

    return ask


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("dif", ["diff"]),
        ("diff v0", ["v01", "v08"]),
        ("diff v01 ", ["latest", "pinned", "v01", "v08"]),
        ("show la", ["latest"]),
        ("show run:3", ["run:3"]),
        ("runs tag 3", ["3"]),
        ("history --workload s", ["small_gpt"]),
        ("history --workload small_gpt ste", ["step"]),
        ("findings --version v08", ["v08"]),
        # a word to choose from comes from no database
        ("diff v01 v08 --match sh", ["shape"]),
        # none: a shell goes on with paths
        ("diff ./no-such", []),
    ],
)
def test_names_come_from_the_database(complete, line, offered):
    assert complete(line) == offered


def test_without_a_database_nothing_is_offered_and_nothing_is_made(complete, tmp_path):
    assert complete("diff v0", tmp_path / "none.db") == []
    assert not (tmp_path / "none.db").exists()
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database" * 1000)
    assert complete("diff v0", broken) == []


def test_names_of_branches_findings_and_incidents(store):
    runs(store, "m1")
    runs(store, "m2", start=3)
    runs(store, "push1", {"op07": 5.0}, start=6, workload="gpt @ pr_12")
    runs(store, "m3", {"op07": 5.0}, start=9)
    update(store, tracks_of(store))
    assert names_beginning_with(store, "branch", "pr") == ["pr_12"]
    assert names_beginning_with(store, "workload", "g") == ["gpt"]
    assert names_beginning_with(store, "version", "m", "gpt") == ["m1", "m2", "m3"]
    assert names_beginning_with(store, "version", "m", "another") == []
    # an underscore stands for itself, and upper case is another name
    assert names_beginning_with(store, "branch", "pr_1") == ["pr_12"]
    assert names_beginning_with(store, "version", "M") == []
    assert names_beginning_with(store, "finding", "I-")[:1] == ["I-1"]
    assert "1" in names_beginning_with(store, "finding", "")
    assert names_beginning_with(store, "series", "op07") == ["op07"]
