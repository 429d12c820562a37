"""Commands in messages: what people copy from them is the command that was meant, or there is none."""

from __future__ import annotations

import shlex
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace

from tests.reports.builders import messages
from tracker.reports.commands import exact_command
from tracker.reports.message import Limits, as_code, is_pasteable
from tracker.reports.message import write as render_message

NAMES = st.text(st.one_of(st.characters(), st.sampled_from("`'\"$;&|<>@!#\\ \n*_~()[]{}-")), min_size=1, max_size=30)
WIDE = Limits(100_000, 250)


def asked(*words):
    """A message with one command, and the words of it."""
    line = exact_command(*words)
    return messages.message(commands={} if line is None else {"reproduce": line})


def shown_in_text(message):
    """The words that a shell gets of the command that a message without Markdown shows; None: it shows none."""
    lines = render_message(message, limits=WIDE).body.split("\n")
    if "Reproduce:" not in lines:
        return None
    return shlex.split(lines[lines.index("Reproduce:") + 1])


def shown_as_code(message):
    """The same of a message in Markdown, as CommonMark reads it."""
    body = render_message(message, markdown=True, limits=WIDE).body
    for block in MarkdownIt().parse(body):
        for place, part in enumerate(block.children or ()):
            if part.content == "Reproduce: ":
                return shlex.split(block.children[place + 1].content)
    return None


@given(NAMES, NAMES)
def test_a_command_is_shown_as_it_was_meant_or_not_at_all(version, workload):
    words = ["tracker", "diff", version, "v2", "--workload", workload]
    message = asked(*words)
    meant = [words] if message.commands and is_pasteable(message.commands["reproduce"]) else [None]
    assert [shown_in_text(message)] == meant
    assert [shown_as_code(message)] == meant


@pytest.mark.parametrize("name", ["a`rm -rf ~`b", "`", "a'; rm -rf ~; '", "$(reboot)", "v1@H100", "a``b`c", "\\`x`"])
def test_a_name_like_this_is_shown_and_smuggles_nothing(name):
    words = ["tracker", "diff", "v1", "v2", "--workload", name]
    assert shown_in_text(asked(*words)) == words
    assert shown_as_code(asked(*words)) == words


@pytest.mark.parametrize(
    "name", ["a\nb", "a\x1bb", "zero\u200bwidth", "<!channel>", "<at user_id='all'>", "v@all", "a  b"]
)
def test_a_name_like_this_is_in_no_command(name):
    message = asked("tracker", "diff", "v1", "v2", "--workload", name)
    assert shown_in_text(message) is None
    assert shown_as_code(message) is None


def test_what_was_stored_with_a_control_character_is_not_shown():
    old = messages.message(commands={"reproduce": "tracker diff 'a\nreboot'", "look": "tracker findings"})
    body = render_message(old).body
    assert "reboot" not in body
    assert "Look closer:\n    tracker findings" in body


class Text(HTMLParser):
    """What a browser shows, and the tags that made it so."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.shown = set(), ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.shown += data


EVIL = "[click](http://evil.example) <img src=x onerror=y> **bold** _it_ `code` ![i](j)"


@pytest.mark.parametrize("titled", [True, False])
def test_names_in_headlines_are_marked_up_nowhere(titled):
    found = messages.told(version=EVIL, device=EVIL, shown=(messages.finding(EVIL[:50], 1, 2),), by_step=False)
    part = messages.message("opened", found, workload=EVIL, commands={})
    over = messages.message("recovered", replace(found, recovered_in=EVIL), workload=EVIL, commands={})
    alarm = replace(messages.alarm(), title=EVIL, workload=EVIL)
    for message in (part, over, alarm):
        body = render_message(message, markdown=True, limits=Limits(100_000, 250 if titled else 0)).body
        read = Text(MarkdownIt("commonmark", {"html": True}).render(body))
        assert read.tags <= {"p", "ul", "li", "code"}, body


@given(st.text(min_size=1, max_size=30).filter(lambda text: "\n" not in text and "\r" not in text and text.strip()))
def test_code_is_what_was_said(text):
    (block,) = (one for one in MarkdownIt().parse(f"x {as_code(text)} y") if one.type == "inline")
    code = next(part for part in block.children if part.type == "code_inline")
    assert code.content == text.replace("\x00", "\ufffd")
