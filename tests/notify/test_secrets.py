"""The address of a channel is in no database, no output, no log and no error, whatever goes wrong."""

from __future__ import annotations

import logging
import sys
import traceback
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.notify.made import DAY, NOW, alerts, text_of_database
from tests.notify.server import Answer
from tests.reports.builders import messages
from tracker import config, notify
from tracker.config import Channel
from tracker.notify import Alarm
from tracker.notify.addresses import BadAddress, address_of, parts_of, scrubbed
from tracker.notify.sending import Sender
from tracker.store import notifications, open_store

TOKEN = "S3cretToken"


@pytest.mark.parametrize("name", ["feishu", "lark", "dingtalk", "wecom", "webhook"])
@pytest.mark.parametrize(
    "answer",
    [
        Answer(500, f"no robot {TOKEN} here"),
        Answer(200, f'{{"errcode": 93000, "errmsg": "invalid key {TOKEN.lower()}"}}'),
        Answer(drop=True),
    ],
)
def test_no_failure_shows_the_address(services, server, tmp_path, capfd, caplog, name, answer):
    caplog.set_level(logging.DEBUG)
    server.answer = answer
    database, settings = tmp_path / "t.db", alerts(channels=(name,))
    with open_store(str(database)) as store:
        notify.alarm(store, settings, Alarm("1", "watcher", "", "x"), now_ns=NOW)
        send = Sender({name: services[name]})
        for step in range(6):
            notify.deliver(store, settings, now_ns=NOW + step * DAY, send=send)
        assert notifications.listed(store).frame["state"].tolist() == ["dead"]
        assert server.got, "it was tried"
        kept = text_of_database(database)
    printed = "".join(capfd.readouterr()) + caplog.text
    assert TOKEN.lower() not in printed.lower()
    assert TOKEN.lower().encode() not in kept.lower()


def test_an_error_of_a_plugin_does_not_show_it_either(services, monkeypatch, capfd):
    from apprise.plugins.feishu import NotifyFeishu

    def broken(self, *_, **__):
        raise RuntimeError(f"no {self.token}")

    monkeypatch.setattr(NotifyFeishu, "send", broken)
    sender = Sender({"A": services["feishu"]})
    assert sender(Channel(name="x", url_env="A"), messages.message()) == "its plugin failed (RuntimeError)"
    assert TOKEN not in "".join(capfd.readouterr())


@pytest.mark.parametrize("name", ["feishu", "webhook"])
@pytest.mark.parametrize("answer", ["%s", '{"errcode": 1, "errmsg": "%s"}'])
@pytest.mark.parametrize("room", range(156, 199, 6))
def test_an_answer_that_is_too_long_is_not_cut_within_the_address(services, server, name, answer, room):
    server.answer = Answer(500 if answer == "%s" else 200, answer % ("x" * room + TOKEN + "y" * 300))
    reason = Sender({"A": services[name]})(Channel(name="x", url_env="A"), messages.message())
    assert len(reason) <= 200
    assert not [start for start in range(4, len(TOKEN)) if TOKEN[:start] in reason], reason


def test_a_channel_that_cannot_be_opened_harms_nobody_and_shows_nothing(services, monkeypatch, capfd):
    import apprise

    def broken(address, **_):
        raise ValueError(f"no {address}")

    monkeypatch.setattr(apprise.Apprise, "instantiate", broken)
    sender = Sender({"A": services["feishu"]})
    assert sender(Channel(name="x", url_env="A"), messages.message()) == "it cannot be opened (ValueError)"
    assert TOKEN not in "".join(capfd.readouterr())


def test_a_channel_is_printed_without_its_address():
    channel = Channel(name="team", url=f"feishu://{TOKEN}")
    try:
        raise ValueError(channel)
    except ValueError:
        shown = "".join(traceback.format_exception(*sys.exc_info()))
    assert TOKEN not in f"{channel} {channel!r} {alerts()} {shown}"


def test_parts_of_an_address_are_found_however_they_are_written():
    parts = parts_of("mailtos://user:pa%24s+wörd@mail.example/?to=a@b.example&key=abc-123")
    for text in ("pa$s+wörd", quote("pa$s+wörd"), "PA$S+WÖRD", "mail.example", "abc-123"):
        assert "***" in scrubbed(f"error: {text}!", parts), text
    assert scrubbed("it answered 500", parts) == "it answered 500"


def test_an_address_comes_from_a_variable_a_file_or_the_settings(tmp_path):
    file = tmp_path / "address"
    file.write_text("feishu://abc\n")
    file.chmod(0o600)
    assert address_of(Channel(name="a", url_env="A"), {"A": " feishu://abc\n"}) == "feishu://abc"
    assert address_of(Channel(name="a", url_file=str(file)), {}) == "feishu://abc"
    assert address_of(Channel(name="a", url="feishu://abc"), {}) == "feishu://abc"


def refused(channel):
    with pytest.raises(BadAddress) as caught:
        address_of(channel, {})
    return str(caught.value)


@pytest.mark.parametrize("field", ["url_env", "url_file"])
def test_an_address_in_a_wrong_entry_is_refused_and_not_shown(field):
    assert refused(Channel(name="a", **{field: f"slack://{TOKEN}"})).startswith(f"{field} is no ")
    assert TOKEN not in refused(Channel(name="a", **{field: f"slack://{TOKEN}"}))


def test_a_file_in_the_home_of_nobody_is_none():
    assert refused(Channel(name="a", url_file="~nobody-here/slack")).startswith("~nobody-here/slack cannot be read (No")


def test_a_file_that_others_can_read_is_refused(tmp_path):
    file = tmp_path / "address"
    file.write_text(f"feishu://{TOKEN}")
    file.chmod(0o640)
    said = refused(Channel(name="a", url_file=str(file)))
    assert said == f"{file} holds a secret, and others can read it; chmod 600 {file}"


def test_a_file_that_is_missing_empty_or_long_says_what_to_do(tmp_path):
    file = tmp_path / "address"
    assert "cannot be read (No such file or directory)" in refused(Channel(name="a", url_file=str(file)))
    for content in ("", "a\nb", "\n"):
        file.write_text(content)
        file.chmod(0o600)
        assert "expected one line, the address" in refused(Channel(name="a", url_file=str(file)))


def test_the_database_and_the_messages_know_channels_by_name_only(tmp_path, server):
    file = tmp_path / "tracker.toml"
    file.write_text(
        f'[[alerts.channels]]\nname = "team"\nurl = "json://{server.host}/{TOKEN}"\n'
        '[[alerts.rules]]\nchannels = ["team"]\n'
    )
    file.chmod(0o600)
    settings = config.load(environ={"TRACKER_CONFIG": str(file)})
    database = Path(tmp_path / "t.db")
    with open_store(str(database)) as store:
        notify.alarm(store, settings.alerts, Alarm("1", "watcher", "", "x"), now_ns=NOW)
        assert notify.deliver(store, settings.alerts, now_ns=NOW).sent == 1
        assert TOKEN.encode() not in text_of_database(database)
