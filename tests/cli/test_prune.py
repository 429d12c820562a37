"""`tracker prune`, as it is typed."""

from __future__ import annotations

import pytest

from tests.cli.ending import ending


@pytest.fixture
def old(tracker, trace, tmp_path):
    """A database with three versions, of which the newest started last."""
    db = tmp_path / "old.db"
    folder = trace["v01"].parent
    for number in (1, 2, 3):
        file = folder / f"run{number}.pt.trace.json.gz"
        assert tracker("ingest", file, "--version", f"v{number}", "--workload", "gpt", "--db", db).code == 0
    return db


def test_a_dry_run_changes_nothing_and_says_what_would_go(tracker, old):
    before = old.read_bytes()
    said = tracker("prune", "--older-than", "1s", "--keep-versions", "1", "--dry-run", "--db", old).out.splitlines()
    assert [line.split()[:4] for line in said[:2]] == [["run", "1", "gpt", "v1,"], ["run", "2", "gpt", "v2,"]]
    assert said[2] == "2 runs would lose their details; nothing was changed; without --dry-run they are"
    assert old.read_bytes() == before


def test_details_go_and_come_back_with_the_profile(tracker, old, trace):
    said = tracker("prune", "--older-than", "1s", "--keep-versions", "1", "--compact", "--db", old)
    assert ending(said.out).startswith("2 runs: ")
    assert "of details deleted; samples and totals stay" in said.out
    refused = tracker("diff", "v1", "v3", "--db", old)
    assert refused.code == 2
    assert "v1: only totals are left of run:1 (tracker prune)" in refused.err
    shown = tracker("show", "run:1", "--only", "operator", "--db", old).out
    assert "no rows: the details of the run were deleted (tracker prune)" in shown
    assert "mm" in tracker("history", "aten::mm", "--workload", "gpt", "--db", old).out
    back = tracker("ingest", trace["v01"], "--version", "v1", "--workload", "gpt", "--db", old).out.splitlines()
    assert back[0].startswith("run 1  gpt v1")
    assert back[-3].startswith("Details of 1 run restored.")
    assert tracker("diff", "v1", "v3", "--db", old).code == 0


def test_details_come_back_with_a_pack_of_the_profile(tracker, old, trace, tmp_path):
    tracker("pack", trace["v01"], "-o", tmp_path / "run.trk", "--version", "v1", "--workload", "gpt")
    tracker("prune", "--older-than", "1s", "--keep-versions", "1", "--db", old)
    back = tracker("ingest", tmp_path / "run.trk", "--db", old)
    assert back.out.startswith("run 1  gpt v1")
    assert tracker("diff", "v1", "v3", "--db", old).code == 0


def test_where_there_is_nothing_to_prune_it_says_what_keeps_the_runs(tracker, old):
    assert tracker("prune", "--yes", "--db", old).out == (
        "no run to prune: all are younger than 90 d, of the newest 5 versions, of a pinned version, under an open "
        "finding, without a start time, or pruned already\n"
    )
    never = tracker("prune", "--older-than", "999999999w", "--keep-versions", "0", "--db", old)
    assert never.out.startswith("no run to prune: all are younger than 6999999993 d, of a pinned version"), never.err


def test_a_workload_that_is_none_is_refused(tracker, old):
    for words in (("prune", "--yes"), ("prune", "--dry-run"), ("versions", "judge")):
        refused = tracker(*words, "--workload", "gtp", "--db", old)
        assert (refused.code, refused.out, refused.err) == (
            2, "", "tracker: there is no workload 'gtp'; there is gpt\n"
        ), words  # fmt: skip


def test_an_age_that_is_none_is_refused(tracker, old):
    refused = tracker("prune", "--older-than", "old", "--db", old)
    assert (refused.code, "'old' is no time such as" in refused.err) == (2, True)


def test_the_policy_of_the_settings_file_holds(tracker, old, tmp_path, monkeypatch):
    settings = tmp_path / "tracker.toml"
    settings.write_text('[prune]\nolder_than = "1s"\nkeep_versions = 2\n')
    monkeypatch.setenv("TRACKER_CONFIG", str(settings))
    assert tracker("prune", "--db", old).out.startswith("run 1  gpt v1")
