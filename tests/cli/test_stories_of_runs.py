"""Versions of a few made traces, from ingest to the exit code and the sentence of a diff."""

from __future__ import annotations

import pytest

from tests.readers import traces

OPERATORS = 24
SPREAD = (1.0, 1.004, 0.996, 1.002, 0.998)


@pytest.fixture
def story(tracker, tmp_path):
    """Ingests versions, and returns a function that judges one of them: exit code, headline and reason."""
    database = tmp_path / "story.db"

    def play(versions, *, runs):
        number = 0
        for version, times in versions.items():
            files = []
            for _ in range(runs):
                files.append(trace(tmp_path, number, **times))
                number += 1
            done = tracker("ingest", *files, "--version", version, "--workload", "w", "--db", database)
            assert done.code == 0, done.err

        def end(after):
            done = tracker("diff", after, "--fail-on", "new", "--db", database)
            # the first line says what is compared; a wide headline leaves no room for the verdict beside it
            headline = done.out.splitlines()[1].split("   ")[0]
            return done.code, headline, done.err.splitlines()[-1]

        return end

    return play


def trace(folder, number, *, steps=(1.0,) * 6, machine=1.0, first=1.0):
    """A run of some steps of 24 operators of 100 us each. `steps`: factor of each step; `first`: of op00."""
    events, now = [], 10_000_000.0 * (number + 1)
    for place, factor in enumerate(steps):
        began = now
        for row in range(OPERATORS):
            noise = SPREAD[(number + row) % len(SPREAD)]
            took = round(100 * noise * machine * factor * (first if row == 0 else 1.0), 3)
            events.append(traces.op(f"aten::op{row:02}", round(now, 3), took))
            now += took
        events.append(traces.step(place, round(began, 3), round(now - began, 3)))
    return traces.write(folder, events, name=f"run{number}.pt.trace.json")


def test_return_to_a_level_of_six_runs_passes(story):
    end = story({"v1": {}, "v2": {}, "v3": {}, "v4": {"first": 8.0}, "v5": {}}, runs=2)
    code, headline, _ = end("v4")
    assert (code, headline.split(" per step")[0]) == (1, "v4 is 29.2 % slower than runs 1-6: 2.40 -> 3.10 ms")
    # the two runs of v4 are no test: it is judged where it is back
    code, headline, _ = end("v5")
    assert (code, headline.split(" per step")[0]) == (0, "v5 is as fast as runs 1-6: 2.40 -> 2.40 ms")


def test_second_rise_after_a_version_of_two_runs_fails(story):
    end = story({"v1": {}, "v2": {}, "v3": {}, "v4": {"first": 8.0}, "v5": {"first": 16.0}}, runs=2)
    code, headline, _ = end("v5")
    assert (code, headline.split(" per step")[0]) == (1, "v5 is 25.8 % slower than runs 7,8: 3.10 -> 3.90 ms")


def test_drift_that_stays_asks_for_another_measurement(story):
    slow = {"machine": 1.12}
    end = story({"v1": {}, "v2": {}, "v3": slow, "v4": slow, "v5": slow}, runs=3)
    code, headline, reason = end("v4")
    assert code == 4
    assert headline.startswith("v4 ran 12.0 % slower than runs 1-6: 2.40 -> 2.69 ms")
    assert "all operators became slower together and stay so" in reason and "measure" in reason
    assert end("v5")[0] == 0, "is no news any more"


def test_slow_steps_fail_though_the_median_step_is_as_fast(story):
    slow = {"steps": (1.0, 1.0, 2.0, 1.0, 1.0, 2.0)}
    end = story({"v1": {}, "v2": slow}, runs=4)
    code, headline, reason = end("v2")
    assert code == 1
    assert headline.startswith("v2 is as fast as runs 1-4: 2.40 -> 2.40 ms per step")
    # its second line names the run, and 7 more steps
    assert headline.endswith(", but its mean step is 33.3 % slower: step 2 of")
    assert "the mean step got slower" in reason
