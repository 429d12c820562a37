"""Runs whose idle time was explained by an earlier rule, beside runs of today."""

from __future__ import annotations

from msgspec.structs import replace

from tests.factories import capture, record
from tracker.compare import diff
from tracker.profile import IDLE_SETTING
from tracker.store import Store, save_run

SENTENCE = "rules on idle time and loaders 0 -> 1"


def save(store: Store, version: str, cause: str, *, older: bool = False, at: int = 0) -> None:
    """A run of two steps of 1000 ns that idles 400 ns for one cause, explained by the rule of today unless `older`."""
    one = capture(steps=2, step_ns=1000, started_at_ns=at, idle=[(cause, "", 400)])
    if older:
        one = replace(one, settings={name: text for name, text in one.settings.items() if name != IDLE_SETTING})
    save_run(store, record(version, started_at_ns=at), [one], formats=["torch_profiler"])


def test_causes_of_two_rules_are_not_compared(store: Store):
    """400 ns of synchronisation and 400 ns without an operator are the same time under two names."""
    for at in range(3):
        save(store, "v1", "synchronisation", older=True, at=at)
        save(store, "v2", "host: no operator", at=at + 10)
    found = diff(store, "v1", "v2")
    assert found.idle.empty
    (remark,) = [text for text in found.notes if "idle time" in text]
    assert SENTENCE in remark
    assert "tracker ingest --again" in remark


def test_causes_of_one_rule_are_compared_whichever_it_is(store: Store):
    save(store, "v1", "synchronisation", older=True)
    save(store, "v2", "synchronisation", older=True, at=10)
    found = diff(store, "v1", "v2")
    assert found.idle["cause"].tolist() == ["synchronisation"]
    assert not any("rules on idle time and loaders" in text for text in found.notes)


def test_side_of_both_rules_says_no_causes(store: Store):
    save(store, "v1", "synchronisation", older=True)
    save(store, "v1", "host: no operator", at=1)
    save(store, "v2", "host: no operator", at=10)
    found = diff(store, "v1", "v2")
    assert found.idle.empty
    assert any("by other rules on idle time and loaders: its causes are not compared" in text for text in found.notes)
