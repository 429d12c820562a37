"""Messages: what people and machines get to read, that it fits, and that names from a trace do no harm in it."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.reports.builders import messages
from tracker.reports.message import Limits, cut, harmless, json_of, of_json, said
from tracker.reports.message import write as render_message
from tracker.results import Message
from tracker.results.findings import ToldCommit

CASES = {
    "opened": messages.message(),
    "recovered": messages.recovered(),
    "two_devices": messages.two_devices(),
    "held_back": messages.held_back(),
    "alarm": messages.alarm(),
    "linked": messages.linked(**messages.SINGLE),
    "linked_devices": messages.linked(messages.two_devices(), commits=7),
}


def whole(written):
    return f"{written.title}\n\n{written.body}\n"


@pytest.mark.parametrize("case", CASES)
def test_the_long_text_is_the_golden_one(golden, case):
    golden(f"message_{case}.txt", whole(render_message(CASES[case])))


@pytest.mark.parametrize("case", ["opened", "two_devices", "linked", "linked_devices"])
def test_the_markdown_is_the_golden_one(golden, case):
    golden(f"message_{case}.md", whole(render_message(CASES[case], markdown=True)))


def test_the_short_text_of_1000_characters_is_the_golden_one(golden):
    golden("message_short.txt", whole(render_message(CASES["opened"], "short", limits=Limits(1000, 100))))


def test_the_json_is_the_golden_one_and_reads_back(golden):
    written = render_message(CASES["opened"], "json")
    golden("message.json", json.dumps(json.loads(written.body), indent=2) + "\n")
    assert json.loads(written.body)["schema"] == 1
    assert of_json(json_of(CASES["opened"]).decode()) == CASES["opened"]


def test_the_first_line_says_how_much_since_when_and_where():
    title = render_message(CASES["opened"]).title
    assert title == "[critical] gpt: step +7.5 %, 400.00 ms -> 430.00 ms, v41 -> v42, NVIDIA H100"


def test_what_got_better_is_not_announced_with_a_step_that_got_slower():
    better = messages.finding("aten::gelu", 3, 1, direction="improvement")
    found = messages.told(direction="improvement", severity="info", by_step=False, shown=(better,), more=0)
    title = render_message(messages.message("opened", found, severity="info")).title
    assert title == "[info] gpt: aten::gelu -66.7 %, v41 -> v42, NVIDIA H100"


def test_the_explanation_adds_up():
    body = render_message(CASES["opened"]).body
    parts = [float(part) for part in re.findall(r"(?:found|shapes|operators|communication) \+?(-?[0-9.]+) ms", body)]
    assert sum(parts) == pytest.approx(30.0)


def test_a_channel_without_titles_gets_it_as_its_first_line():
    written = render_message(CASES["opened"], limits=Limits(title=0))
    assert written.title == ""
    assert written.body.startswith("[critical] gpt: step +7.5 %")


def test_every_form_names_incident_and_event_so_that_a_repetition_is_recognised():
    for form, limits in (("long", Limits()), ("short", Limits(1000, 100)), ("short", Limits(300, 0))):
        assert render_message(CASES["opened"], form, limits=limits).body.endswith(
            "tracker opened I-12 [1.1.1.42.regression:opened:1]"
        )


def size_in_bytes(text):
    return len(text.encode())


@pytest.mark.parametrize("limits", [Limits(1000, 100), Limits(2048, 0, size_in_bytes), Limits(2000, 250)])
@pytest.mark.parametrize("case", CASES)
def test_the_short_form_fits_and_says_what_to_do(case, limits):
    written = render_message(CASES[case], "short", limits=limits)
    assert limits.size(written.body) <= limits.body
    assert len(written.title) <= max(limits.title, 0)
    if case == "opened":
        assert "tracker diff v41 v42 --workload gpt" in written.body
        assert "tracker ack" not in written.body, "one command: the message in a chat is short"
        assert written.body.count("\n") + 1 + bool(limits.title) <= 12


@given(st.integers(60, 1500), st.sampled_from(sorted(CASES)), st.sampled_from(["long", "short"]))
def test_nothing_is_cut_within_a_number(limit, case, form):
    full = {word for form in ("long", "short") for word in render_message(CASES[case], form).body.split()}
    full |= set(render_message(CASES[case]).title.split())
    written = render_message(CASES[case], form, limits=Limits(limit, 0))
    assert len(written.body) <= limit
    numbers = [word for word in written.body.split() if any(char.isdigit() for char in word)]
    assert set(numbers) <= full


def test_names_that_would_ping_link_or_break_lines_do_not():
    name = "aten::@here <!channel> <at user_id='all'></at> http://evil.example www.evil.example\n# x `y` *z*"
    found = messages.told(shown=(messages.finding(name, 1, 2),), by_step=False)
    for markdown in (False, True):
        text = whole(render_message(messages.message("opened", found), markdown=markdown))
        assert not re.search(r"@\w|<!|<at\b|</at|://|www\.", text)
        assert "\n# x" not in text
    bullet = next(line for line in text.splitlines() if line.startswith("- ``aten"))
    assert bullet.count("``") == 2, "the name is one piece of code"


def test_plain_words_stay_as_they_are_and_long_names_are_cut():
    assert said("v41", markdown=True) == "v41"
    assert said("gemm<float, 4>", markdown=False) == "gemm<float, 4>"
    assert len(said("k" * 3000, markdown=False)) == 120
    assert harmless("a\x1b[31mb") == "a\\x1b[31mb"


@given(st.text(max_size=40), st.integers(0, 60))
def test_a_cut_text_is_never_too_long(text, limit):
    assert len(cut(text, limit)) <= max(limit, 0)


def test_an_endless_error_does_not_push_the_line_out_that_says_it():
    bad = Message(
        event="quarantined", key="k", workload="", title="1 profile cannot be read", lines=("/a: " + "x" * 9000,)
    )
    assert "/a: xxx" in render_message(bad, "short", limits=Limits(1000, 100)).body


def links_in(text):
    """What a messenger makes a link of."""
    return re.findall(r"https?://[^\s)\]>]+", text)


@pytest.mark.parametrize("markdown", [False, True])
def test_each_incident_of_a_message_has_its_own_link(markdown):
    found = links_in(render_message(CASES["linked_devices"], markdown=markdown).body)
    assert [one for one in found if "tracker" in one] == [
        "https://tracker.example/incident/I-12", "https://tracker.example/incident/I-13"
    ]  # fmt: skip


@pytest.mark.parametrize("event", ["held_back", "recovered"])
def test_a_message_without_details_has_its_link_and_no_commits(event):
    body = render_message(messages.linked(CASES[event], **messages.SINGLE)).body
    assert links_in(body) == ["https://tracker.example/incident/I-12"]
    assert "Ann Lee" not in body


def test_the_link_stays_where_there_is_little_room():
    for case in ("linked", "linked_devices"):
        for limit in (130, 160, 200, 300, 500, 1000):
            body = render_message(CASES[case], "short", limits=Limits(limit, 100)).body
            whole = {"https://tracker.example/incident/I-12"} | {*links_in(render_message(CASES[case]).body)}
            assert {*links_in(body)} <= whole, "no link is cut"
            assert limit < 250 or "https://tracker.example/incident/I-12" in body


EVIL_LINK = "x](https://evil.example) https://evil.example <https://evil.example> [a](//evil.example)"


@pytest.mark.parametrize("markdown", [False, True])
@pytest.mark.parametrize("form", ["long", "short"])
def test_no_name_from_outside_becomes_a_link(form, markdown):
    found = messages.told(
        version=EVIL_LINK, good_version=EVIL_LINK, device=EVIL_LINK, configuration=EVIL_LINK,
        shown=(messages.finding(EVIL_LINK, 1, 2),),
    )  # fmt: skip
    commit = ToldCommit(commit="83fb3812", author=EVIL_LINK, subject=EVIL_LINK)
    hostile = {"author": EVIL_LINK, "subject": EVIL_LINK, "named_commits": (commit,), "commits": 1}
    for more in (hostile, {"commits": 3}):
        for incidents in ((found,), (found, found)):
            message = messages.linked(messages.message("opened", *incidents, workload=EVIL_LINK), **more)
            written = render_message(message, form, markdown=markdown)
            assert not [one for one in links_in(whole(written)) if "evil" in one]
            links = [
                token.attrs["href"] for block in MarkdownIt().parse(written.body) if markdown
                for token in block.children or () if token.type == "link_open"
            ]  # fmt: skip
            assert not any("evil" in link for link in links)
            assert len(links) == (len(incidents) + 1) * markdown


@pytest.mark.parametrize("markdown", [False, True])
def test_advice_ends_at_a_sentence_or_a_word(markdown):
    """It was cut at 120 characters: "... the loa..."."""
    long = (
        "Raise num_workers of the DataLoader, since the step waits for its data in 33.1 ms of 152 ms: at most 33.1 ms"
    )
    first = f"{long}. Pin the memory, too, so that copies run beside the step."
    assert len(first) > 120
    body = render_message(messages.message("opened", messages.told(advice=(first,))), markdown=markdown).body
    assert "copies run beside the step." in body
    for text, end in ((f"{first} {first} {first}", "at most 33.1 ms."), ("word " * 100, "word ...")):
        body = render_message(messages.message("opened", messages.told(advice=(text,))), markdown=markdown).body
        (line,) = (line for line in body.splitlines() if "What to do" in line)
        assert line.rstrip("`").endswith(end) and len(line) < 330
