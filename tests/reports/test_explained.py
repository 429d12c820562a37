"""What explains a finding and an incident: a screen each, every test a sentence with its limit."""

from __future__ import annotations

import csv
import io
import json
import re
from itertools import product

from msgspec.structs import replace

from tests.reports import builders
from tests.reports.builders.diffs import MS
from tests.reports.builders.explained import TESTS, explained
from tests.reports.workbooks import opened
from tracker.reports import render, view_of
from tracker.reports.document import Look
from tracker.reports.views.finding_tests import notes_on_tests, sentence_of_test
from tracker.results import ExplainedIncident, finding_tests
from tracker.results.findings import FindingTest

LONG = "the new activation is meant to be exact, and slower until it is fused; " * 2


def screen(found, **look):
    return render(found, "text", width=100, **look)


def test_every_test_is_a_sentence_with_its_limit():
    text = screen(explained())
    assert "\n  passes  8 runs of the level before; at least 3 needed\n" in text
    assert "\n  passes  changed by 50 %, machine-wide drift removed; the limit is 3 %\n" in text
    assert "\n  passes  new runs lie beyond those before, but a pair for each after the second\n" in text
    assert "\n  FAILS   false discovery rate (q) of 0.2; the limit is 0.05 (set)\n" in text
    assert "\n  (set) by a user: alpha 0.05, ann: fewer alarms\n" in text


def of_test(words, value=0.0625, limit=0.03, *, passes=True, test="change", limit_from="default"):
    return FindingTest(test=test, value=value, limit=limit, passes=passes, limit_from=limit_from, meaning=words.meaning)


def test_every_test_fits_a_line_of_80_columns():
    """The largest numbers there are, and a limit that a user set."""
    for words in finding_tests.WORDS_OF_TESTS.values():
        is_probability = words.sentence.startswith(("chance", "false"))
        test = "q" if is_probability else "runs after" if "needed" in words.sentence else "change"
        values = (0.12345, 1.2345e-12) if is_probability else (123.456, -0.12345, 0.0001234)
        limit = 0.025 if "{limit}" in words.sentence else None
        for value, passes in product(values, (True, False)):
            sentence = sentence_of_test(of_test(words, value, limit, passes=passes, test=test))
            assert len("  passes  " + sentence) <= 80, sentence
            if "{" in words.sentence:
                assert any(letter.isdigit() for letter in sentence)
    assert len(sentence_of_test(of_test(finding_tests.CHANGE_OF_QUARTILE, 0.5, limit_from="ann"))) <= 70


def test_a_test_says_number_and_limit_in_plain_words():
    assert sentence_of_test(of_test(finding_tests.CHANGE, 8.43)) == "changed by 843 %; the limit is 3 %"
    assert sentence_of_test(of_test(finding_tests.CHANGE, -0.4)) == "changed by -40 %; the limit is 3 %"
    # a number just below its limit does not look equal to it
    assert sentence_of_test(of_test(finding_tests.CHANGE, 0.029996, passes=False)) == (
        "changed by 2.9996 %; the limit is 3 %"
    )
    few = of_test(finding_tests.RUNS_AFTER, 1, 2, passes=False, test="runs after")
    assert sentence_of_test(few) == "1 run with the change; at least 2 needed"
    beyond = of_test(finding_tests.BEYOND, None, None, passes=False, test="range")
    assert sentence_of_test(beyond) == "too many pairs of a new run and one before are the wrong way round"
    assert sentence_of_test(of_test(finding_tests.FALSE_DISCOVERY_RATE, 2.25e-12, 0.05, test="q")) == (
        "false discovery rate (q) of 2.25e-12; the limit is 0.05"
    )


def test_a_small_number_has_no_exponent():
    tiny = of_test(finding_tests.CONTRIBUTION, 1e-7, 0.001, passes=False, test="contribution")
    assert sentence_of_test(tiny) == "the change is less than 0.001 % of the step; the limit is 0.1 %"
    lower = of_test(finding_tests.CHANGE, -1e-7)
    assert sentence_of_test(lower) == "changed by less than 0.001 %; the limit is 3 %"
    # beside a limit that is as small the number itself is needed
    beside = of_test(finding_tests.CHANGE, 4e-7, 5e-7, passes=False)
    assert sentence_of_test(beside) == "changed by 0.00004 %; the limit is 0.00005 %"
    alike = of_test(finding_tests.CHANGE, 4e-7, 4.0001e-7, passes=False)
    assert sentence_of_test(alike) == "changed by 0.00004 %; the limit is 0.000040001 %"
    assert sentence_of_test(of_test(finding_tests.CHANGE, 0.0)) == "changed by 0 %; the limit is 3 %"


def test_a_number_that_was_not_computed_is_named_so():
    """Without its limit, of which nothing can be said, nor who set it."""
    for words in finding_tests.WORDS_OF_TESTS.values():
        if "{value}" in words.sentence:
            of_user = of_test(words, None, 0.05, test="q", limit_from="alpha 0.05, ann: fewer alarms")
            sentence = sentence_of_test(of_user)
            assert sentence.endswith("was not computed") and "{" not in sentence and "set" not in sentence
            assert [note for note in notes_on_tests([of_user]) if "ann" in note] == []
    assert sentence_of_test(of_test(finding_tests.FALSE_DISCOVERY_RATE, None, 0.05, test="q")) == (
        "false discovery rate (q) was not computed"
    )
    assert sentence_of_test(of_test(finding_tests.CHANCE_OF_SPLIT, None, 0.05, test="q")) == (
        "chance (p) was not computed"
    )


def test_night_effect_is_named_with_its_part_of_the_noise():
    nights = FindingTest(
        test="nights", value=0.25, limit=None, passes=None, limit_from=None, meaning=finding_tests.describe_nights(8)
    )
    sentence = sentence_of_test(nights)
    assert sentence == "night effect (8 nights before, one after), part of the noise: 25 %"
    assert len("  passes  " + sentence) <= 80


def test_a_finding_fits_a_screen_whatever_it_has():
    calls = {"by_calls": 1e6, "by_time_per_call": 4e6, "baseline_calls": 1, "candidate_calls": 2}
    notes, tests = [f"{LONG[:80]} {at}" for at in range(9)], (*TESTS[:3], *TESTS)
    whole = explained(tests=tests, events=9, facts=30, changes=20, notes=notes, cause=LONG, **calls)
    text = screen(whole)
    assert len(text.splitlines()) <= 42, "with a line on the limit that a user set"
    for hidden in ("7 more notes: --details", "6 more: --details", "ENV1 0 -> 1; 18 more: --details."):
        assert hidden in text
    assert len(screen(whole, details=True).splitlines()) > 80


def test_details_are_proposed_where_something_is_left_out():
    assert screen(explained()).endswith(" --details\n"), "7 runs are left out"
    few = explained()
    few = replace(few, rows=replace(few.rows, runs=few.rows.runs[-2:]))
    assert "--details" not in screen(few) and "--details" not in screen(explained(), details=True)


def test_a_kernel_of_5000_characters_is_bounded_in_text_and_markdown():
    long = "void kernel<" + "int, " * 1000 + ">"
    found = explained(name=long, cause=f"renamed, was {long}", input_shapes=long)
    incident = ExplainedIncident((found, explained(3, f"{long} -> {long}")))
    for result in (found, incident, builders.findings([builders.finding(1, long, cause=long)])):
        assert len(screen(result).splitlines()) <= 40
        assert max(map(len, render(result, "markdown").splitlines())) < 1_500


def test_the_screen_shows_runs_of_both_sides():
    text = screen(explained())
    runs = [line.split()[:3] for line in text.partition("\nRuns\n")[2].splitlines()[2:6]]
    assert [run[0] for run in runs] == ["7", "8", "9", "10"]
    assert {run[2] for run in runs} == {"baseline", "candidate"}
    assert "machine-wide drift  change %\n" in text and "… and 7 more" in text


def test_a_peak_is_not_per_step_and_has_no_drift():
    peak = explained(1, "peak memory", kind="run", metric="peak_allocated_bytes", unit="bytes")
    assert "per step" in screen(explained()).splitlines()[1]
    assert "per step" not in screen(peak).splitlines()[1]
    assert "drift  " not in screen(peak) and "series 1\n" in screen(peak)


def test_an_incident_of_many_findings_fits_a_screen():
    many = ExplainedIncident(tuple(explained(at, f"aten::op{at}") for at in range(1, 31)))
    lines = screen(many).splitlines()
    assert lines[0] == "I-3: gpt, NVIDIA H100, batch=32; 30 findings in v42"
    assert lines[1].startswith("aten::op1 (op, all shapes) in v42: 10.00 ms -> 15.00 ms per step (+50.0 %)")
    assert lines.count("    FAILS  false discovery rate (q) of 0.2; the limit is 0.05 (set)") == 8
    assert len(lines) <= 40 and "  … and 22 more" in lines
    details = screen(many, details=True)
    assert all(f"\nFinding {at}: " in details for at in range(1, 31))


def test_files_of_an_incident_have_every_finding():
    found = ExplainedIncident((explained(1), explained(2)))
    document = json.loads(render(found, "json"))
    assert (document["incident_id"], [one["finding"]["finding_id"] for one in document["explained"]]) == (3, [1, 2])
    rows = list(csv.DictReader(io.StringIO(render(found, "csv"))))
    assert [row["finding_id"] for row in rows if row["section"] == "findings"] == ["1", "2"]
    assert {row["finding_id"] for row in rows if row["section"] == "tests"} == {"1", "2"}
    book = opened(render(found, "xlsx"))
    assert [row[0].value for row in book["Findings"].iter_rows()] == ["Finding Id", 1, 2]
    assert book["Tests"]["A1"].value == "Finding Id" and book["Tests"].max_row > 3


def test_an_incident_of_the_step_says_what_happened_to_it():
    """10 -> 15 ms."""
    step = explained(1, "step")
    step = replace(step, finding=replace(step.finding, kind="run", name="step"))
    incident = ExplainedIncident((step, explained(2, "aten::op2")))
    assert screen(incident).splitlines()[1].startswith("v42: the step is 50.0 % slower, 10.00 -> 15.00 ms per step")


def test_chart_of_an_incident_has_the_change_of_its_finding():
    """Runs of 8 and 12.5 ms are 10 ms in their geometric mean, so that 15 ms are 5 ms more, as the finding says."""
    found = explained(1)
    before = [replace(run, value=8.0 * MS if run.run_id % 2 else 12.5 * MS) for run in found.rows.runs[:8]]
    found = replace(found, rows=replace(found.rows, runs=(*before, *found.rows.runs[8:])))
    page = render(ExplainedIncident((found, explained(2, "aten::op2"))), "html")
    assert "aten::mm <b>+5.00 ms</b>" in page


def test_chart_of_an_incident_has_the_series_of_its_headline_first():
    """A peak that went from 10 to 15 MB leads an incident with two operators of 5 ms more: the chart is of bytes."""
    peak = explained(1, "peak memory", kind="run", metric="peak_allocated_bytes", unit="bytes")
    page = render(ExplainedIncident((peak, explained(2, "aten::op2"), explained(3, "aten::op3"))), "html")
    assert "peak memory <b>+4.77 MiB</b>" in page and "aten::op2 <b>" not in page
    assert "Change of peak memory against its baseline" in page


def test_chart_of_an_incident_keeps_a_small_headline():
    """aten::mm is the headline with 0.1 ms: it is one of six beside the first five of eight operators with 5 ms."""
    others = [explained(at, f"aten::op{at}") for at in range(2, 10)]
    small = explained(1)
    small = replace(small, finding=replace(small.finding, delta=0.1 * MS))
    page = render(ExplainedIncident((small, *others)), "html")
    assert page.index("aten::mm <b>") < page.index("aten::op2 <b>") and "aten::op7 <b>" not in page
    assert "Change of aten::mm, and of what changed with it, against their baselines" in page


def test_a_page_of_an_incident_draws_its_series_and_folds_its_tests():
    many = ExplainedIncident(tuple(explained(at, f"aten::op{at}") for at in range(1, 10)))
    page = render(many, "html")
    assert page.count('<path class="curve s') == 2 * 6, "six courses, and a key of each"
    assert page.count("changed by 50 %, machine-wide drift removed; the limit is 3 %") == 9


def test_an_incident_has_a_line_for_the_change_of_each_finding():
    passing = [explained(at, f"aten::op{at}", tests=TESTS[:3]) for at in (1, 2)]
    text = render(ExplainedIncident(tuple(passing)), "text", width=80)
    assert text.count("\n    changed by 50 %, machine-wide drift removed; the limit is 3 %\n") == 2
    assert max(map(len, text.splitlines())) <= 80


def test_notes_say_what_a_sentence_has_no_room_for():
    words = finding_tests.CHANGE_OF_QUARTILE_WITHOUT_DRIFT
    text = screen(explained(tests=(("change", 0.34, 0.03, True, "default", words.meaning),)))
    assert "\n  passes  changed by 34 % at the lower quartile of calls; the limit is 3 %\n" in text
    assert "varied less than their sum; machine-wide drift is removed from the change" in " ".join(text.split())


def incident_of(*findings, **parts):
    """An incident of 10 -> 15 ms with these parts of its step."""
    none = dict.fromkeys(("operators_ns", "new_ns", "gone_ns", "machine_ns", "other_operators_ns", "earlier_ns"))
    listed = builders.incident(
        baseline_step_ns=10 * MS, candidate_step_ns=15 * MS, step_delta_ns=5 * MS, **none | {"beside_ns": None} | parts
    )
    return ExplainedIncident(tuple(replace(one, incident=listed) for one in findings))


def test_the_page_of_an_incident_adds_up_its_step():
    page = render(incident_of(explained(1), operators_ns=6 * MS, gone_ns=-1 * MS), "html")
    rows = re.findall(r"<tr.*?>(.*?)(?=<tr|</tbody>)", page.partition("How the step adds up")[2], re.DOTALL)
    texts = [re.sub("<[^>]+>", " ", row).split() for row in rows[1:5]]
    assert [" ".join(text) for text in texts] == [
        "level before v42: 10.00 ms per step", "operators found +6.00 ms 120 %",
        "gone operators or shapes -1.00 ms -20 %", "= v42: 15.00 ms per step +5.00 ms 100 %",
    ]  # fmt: skip
    assert "How the step adds up" not in render(incident_of(explained(1)), "html"), "no part is known"


def test_the_line_of_a_replacement_is_that_of_all_its_operators():
    """Its largest operator went from 10 to 15 ms, all of it from 20 to 40 ms."""
    whole = explained(1, "aten::gelu -> aten::mul, aten::tanh")
    page = render(incident_of(whole, explained(2)), "html")
    assert "aten::mul, aten::tanh <b>" not in page, "the runs of all are not known"
    values = tuple(40.0 * MS if run.side == "candidate" else 20.0 * MS for run in whole.rows.runs)
    page = render(incident_of(replace(whole, replacement_values=values), explained(2)), "html")
    assert "<b>+20.00 ms</b>" in page


def test_folds_of_a_file_name_what_they_are_about():
    page = render(incident_of(explained(1), explained(2, "aten::op2")), "html")
    for title in ("Tests of aten::op2", "Runs of aten::op2", "Events of aten::op2"):
        assert f"<h2>{title}</h2>" in page


def test_what_changed_with_an_incident_stands_below_its_headline():
    """The commits, too, and as no small note at the end; a file and a terminal have them as before."""
    found = explained(1, changes=1, notes=("Between v41 and v42: 3 commits",))
    incident = ExplainedIncident((found,), ("Between v41 and v42: 3 commits",))
    page = view_of("incident").document(incident, Look(details=True, has_drawings=True, has_links=True))
    assert page.remarks == ("Changed with it: ENV0 0 -> 1.", "Between v41 and v42: 3 commits") and page.notes == ()
    text = view_of("incident").document(incident, Look(details=True))
    assert text.remarks == () and text.notes == ("Note: Between v41 and v42: 3 commits",)
