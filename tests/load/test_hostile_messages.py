"""Names from traces never act in what people are told of: not in mails, not in messengers, not in webhooks."""

from __future__ import annotations

import email
import json
import re
import shlex
import smtplib
from email.policy import default
from html.parser import HTMLParser

import pytest
import requests
from msgspec import Struct
from msgspec.structs import asdict, replace

from tests.load.test_hostile_names import FORMULAS, HTML, NAMES, SHELL, SQL, TERMINAL
from tests.notify.made import Team, alerts
from tests.notify.server import texts
from tests.regressions.made import runs
from tests.reports.builders import messages
from tracker.config import Channel
from tracker.notify.sending import Sender
from tracker.regressions.judgement import tracks_of, update
from tracker.reports.message import Limits, write

LINES = "a\nFORGED LINE\r\nBcc: evil@example.com\r\n\r\nFORGED BODY"
MENTION = "@channel <!everyone> <at user_id='all'> [x](https://evil.example)"
LONG = "x" * 1_000_000
HOSTILE = (*NAMES, LINES, MENTION, LONG)
IDS = [text[:20].encode("unicode_escape").decode() for text in HOSTILE]
WORDS = frozenset({"event", "key", "severity", "kind", "change", "direction", "state", "unit", "commands"})
"""Fields whose texts are ours."""

KINDS = {
    "opened": messages.message(),
    "recovered": messages.recovered(),
    "two devices": messages.two_devices(),
    "held back": messages.held_back(),
    "alarm": messages.alarm(),
}


def poisoned(value, text):
    """The message with `text` for everything that comes from outside."""
    if isinstance(value, str):
        return text if value else value
    if isinstance(value, tuple):
        return tuple(poisoned(one, text) for one in value)
    if isinstance(value, Struct):
        found = {name: poisoned(own, text) for name, own in asdict(value).items() if name not in WORDS}
        return replace(value, **found)
    return value


def all_of(text):
    return [poisoned(message, text) for message in KINDS.values()]


class Tags(HTMLParser):
    """The tags of a document, with what would act in them."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(document)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}


FORMATTING = {"html", "head", "body", "p", "br", "ul", "ol", "li", "code", "pre", "b", "strong", "i", "em", "h1"}


def is_plain(text):
    return not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", text)


@pytest.mark.parametrize("text", HOSTILE, ids=IDS)
@pytest.mark.parametrize("form", ["long", "short"])
@pytest.mark.parametrize("markdown", [False, True])
def test_a_message_holds_a_name_on_one_line_that_fits(text, form, markdown):
    limits = Limits(body=4000, title=250)
    for message in all_of(text):
        written = write(message, form, markdown=markdown, limits=limits)
        assert len(written.body) <= 4000
        assert len(written.title) <= 250
        assert is_plain(written.title.replace("\n", "\x00"))
        assert is_plain(written.body)
        assert not [line for line in written.body.splitlines() if re.match(r"\W*(FORGED|Bcc)", line)]
        for call in ("@channel", "<!everyone", "<at ", "://evil"):
            assert call not in written.title + written.body
        if markdown:
            outside_code = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", written.body)
            assert "<" not in outside_code
            assert "](" not in outside_code


@pytest.mark.parametrize("text", HOSTILE, ids=IDS)
def test_a_webhook_gets_names_as_they_are_and_no_byte_that_acts(text):
    for message in all_of(text):
        body = write(message, "json").body
        assert is_plain(body)
        assert "\n" not in body
        assert text in set(texts(json.loads(body)))


@pytest.fixture
def mails(monkeypatch):
    """What goes to a mail server."""
    sent = []

    class Server:
        def __init__(self, *_, **__):
            pass

        def sendmail(self, _from, _to, content):
            sent.append(email.message_from_string(content, policy=default))

        def __getattr__(self, _name):
            return lambda *_, **__: None

    for name in ("SMTP", "SMTP_SSL"):
        monkeypatch.setattr(smtplib, name, Server)
    monkeypatch.setattr("apprise.plugins.email.base.NotifyEmail.request_rate_per_sec", 0)
    return sent


@pytest.mark.parametrize("form", ["html", "text"])
@pytest.mark.parametrize("text", HOSTILE, ids=IDS)
def test_a_mail_has_our_headers_and_our_tags_alone(mails, text, form):
    address = f"mailto://me:secret@example.com?smtp=127.0.0.1&to=team@example.com&format={form}"
    for message in all_of(text):
        assert Sender({"ADDRESS": address})(Channel(name="x", url_env="ADDRESS"), message) is None
    assert len(mails) == len(KINDS)
    for mail in mails:
        assert mail["To"] == "team@example.com"
        assert (mail["Bcc"], mail["Cc"]) == (None, None)
        assert "\n" not in mail["Subject"]
        assert is_plain(mail["Subject"])
        for part in mail.walk():
            if part.get_content_type() == "text/html":
                found = Tags(part.get_content())
                assert found.tags <= FORMATTING
                assert not found.attributes
        assert len(mail.as_bytes()) < 200_000


@pytest.mark.parametrize("text", HOSTILE, ids=IDS)
def test_telegram_gets_no_tag_of_a_name(monkeypatch, text):
    sent = []

    def answer(self, request, **_):
        sent.append(json.loads(request.body))
        taken = requests.Response()
        taken.status_code, taken._content = 200, b"{}"
        return taken

    monkeypatch.setattr(requests.Session, "send", answer)
    monkeypatch.setattr("apprise.plugins.telegram.NotifyTelegram.request_rate_per_sec", 0)
    sender = Sender({"ADDRESS": "tgram://123456789:abcdefg_hijklmnop/12315544"})
    for message in all_of(text):
        assert sender(Channel(name="x", url_env="ADDRESS"), message) is None
    assert sent
    for payload in sent:
        assert all(Tags(one).tags <= FORMATTING for one in texts(payload))


@pytest.mark.parametrize("name", [*FORMULAS[:1], SQL, HTML, SHELL, TERMINAL, LINES])
def test_a_command_that_is_told_is_one_command_with_the_name_as_a_word(memory_store, name):
    """From runs in a database to what arrives."""
    label = name if name.isprintable() else "v"  # no other label is taken
    for version, factor, start in ((label, 1.0, 0), (f"{label}2", 1.5, 5)):
        runs(memory_store, version, {name: int(1_000_000 * factor)}, count=5, start=start, workload=label)
    update(memory_store, tracks_of(memory_store))
    team = Team(memory_store, alerts())
    team.look()
    team.now_ns += 3600 * 10**9
    team.look()
    told = [message for _, message in team.box.arrived if message.incidents]
    assert name in {finding.name for message in told for finding in message.incidents[0].shown}
    commands = [command for message in told for command in message.commands.values()]
    assert commands
    for command in commands:
        assert shlex.split(command)[0] == "tracker"
        words = shlex.split(command)
        assert all(word in (label, f"{label}2") or name not in word for word in words)
