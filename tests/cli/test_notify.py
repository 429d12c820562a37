"""`tracker notify` and mutes by pattern, as users type them."""

from __future__ import annotations

import json
import re
import shlex
import time

import pytest

from tests.notify.made import slower, text_of_database
from tests.notify.server import Answer, serving
from tests.regressions.made import runs
from tracker.notify.sending import Sender
from tracker.store import notifications, open_store

TOKEN = "S3cretToken"


@pytest.fixture
def server():
    with serving() as found:
        yield found


@pytest.fixture
def told(tracker, db, server, monkeypatch, tmp_path):
    """Calls the program with a settings file: a webhook of ours hears of everything at once."""
    file = tmp_path / "tracker.toml"
    file.write_text(
        f'database = "{db}"\n[[alerts.channels]]\nname = "hook"\nurl_env = "HOOK"\n'
        '[[alerts.channels]]\nname = "spare"\nurl_env = "SPARE"\n'
        '[[alerts.rules]]\nchannels = ["hook"]\nseverity = "info"\nwhen = "at once"\n'
    )
    monkeypatch.setenv("TRACKER_CONFIG", str(file))
    monkeypatch.setenv("HOOK", f"json://{server.host}/{TOKEN}")

    def call(*words):
        monkeypatch.setenv("TRACKER_CONFIG", str(file))
        return tracker(*words)

    return call


class SendsHere(Sender):
    """Sends in this process, in which a plugin can be replaced."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def test_one_round_tells_what_is_new_and_the_next_one_nothing(told, server):
    done = told("notify")
    assert done.code == 0
    assert done.out.startswith("1 message made; 1 sent, 0 failed (retried later), 0 given up.")
    ((_, body),) = server.got
    assert body["tracker"]["incidents"][0]["version"] == "v08"
    assert told("notify").out.startswith("0 messages made; 0 sent")
    assert len(server.got) == 1


def test_a_dry_run_prints_the_message_and_changes_nothing(told, server, db):
    before = db.read_bytes()
    out = told("notify", "--dry-run").out
    assert "\\n" not in out
    assert "to hook: [critical] small_gpt: step +" in out
    assert "Reproduce:\n    tracker diff v01 v08 --workload small_gpt\n" in out
    assert out.splitlines()[-1] == "1 message would be sent."
    assert db.read_bytes() == before
    assert server.got == []
    assert TOKEN not in out


def test_what_cannot_be_delivered_is_said_listed_and_tried_again(told, server, db):
    server.answer = Answer(200, '{"errcode": 93000, "errmsg": "invalid webhook url"}')
    done = told("notify")
    assert "0 sent, 1 failed" in done.out
    assert "to hook (failed): it answered 200 with errcode 93000: invalid webhook url" in done.err
    listed = told("notify", "--list").out
    assert "errcode 93000" in listed
    assert "1 message pending, 0 given up." in listed
    with open_store(str(db)) as store, store.begin() as connection:
        connection.exec_driver_sql("UPDATE notification SET state = 'dead' WHERE state = 'failed'")
    assert "0 messages pending, 1 given up." in told("notify", "--list").out
    server.answer = Answer()
    assert told("notify", "--retry", "dead").out == "1 message will be retried.\n"
    assert "1 sent" in told("notify").out
    assert TOKEN.encode() not in text_of_database(db)


def test_a_test_message_says_per_channel_how_it_went(told, server):
    done = told("notify", "--test")
    assert done.code == 2
    assert done.out.splitlines() == [
        "hook: delivered", "spare: failed: the variable SPARE is not set; set it to the address"
    ]  # fmt: skip
    assert told("notify", "--test", "hook").code == 0
    assert server.got[0][1]["tracker"]["event"] == "test"


def test_a_message_that_waits_after_a_failure_can_be_tried_at_once(told, server):
    server.answer = Answer(status=500)
    done = told("notify")
    assert "1 failed (retried later)" in done.out
    (number,) = re.findall(r"message (\d+) to hook", done.err)
    server.answer = Answer()
    assert "0 sent" in told("notify").out
    assert told("notify", "--retry", number).out == "1 message will be retried.\n"
    assert "1 sent" in told("notify").out


def test_a_login_page_is_no_service(told, server):
    server.answer = Answer(status=302, headers={"Location": "/login"})
    done = told("notify", "--test", "hook")
    assert (done.code, done.out) == (2, "hook: failed: it answers 302 to another address: write that one\n")


def test_a_service_that_may_drop_a_message_is_to_be_looked_at(told, server, monkeypatch):
    from apprise.plugins.feishu import NotifyFeishu

    monkeypatch.setattr(NotifyFeishu, "notify_url", f"http://{server.host}/{{token}}")
    monkeypatch.setattr("tracker.notify.sending_process.SendingProcesses", SendsHere)
    monkeypatch.setenv("SPARE", f"feishu://{TOKEN}")
    done = told("notify", "--test", "spare")
    assert done.out.startswith("spare: delivered; check there")
    server.answer = Answer(200, '{"code": 19024, "msg": "Key Words Not Found"}')
    done = told("notify", "--test", "spare")
    assert (done.code, done.out.strip()) == (2, "spare: failed: it answered 200 with code 19024: Key Words Not Found")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--test", "nobody"], "there is no channel 'nobody'; channels: hook, spare"),
        (["hook"], "channels need --test"),
        (["--test", "--list"], "choose one of --test, --list"),
        (["--retry", "x"], "--retry 'x' is not a message"),
        (["--retry", "99"], "message 99 is not failed or given up"),
    ],
)
def test_wrong_wishes_say_what_to_do(told, words, said):
    done = told("notify", *words)
    assert done.code == 2
    assert said in done.err


def test_without_channels_it_says_what_to_add(tracker, db):
    done = tracker("notify", "--db", db)
    assert done.code == 2
    assert "has no [[alerts.channels]]" in done.err


def test_a_mute_by_pattern_holds_until_its_end_and_can_be_ended(told, server, db):
    out = told("mute", "--op", "*", "--workload", "small*", "--until", "3d", "--reason", "moving machines").out
    assert out.startswith("silence:1: no alerts of * until 20")
    assert "0 messages made" in told("notify").out
    listed = told("notify", "--list").out
    assert "small*" in listed
    assert "moving machines" in listed
    with open_store(str(db)) as store:
        (silence,) = notifications.silences(store, time.time_ns())
        assert notifications.silences(store, silence.until_ns) == []
    assert told("unmute", "silence:1", "--reason", "done").out == "silence:1 ended\n"
    assert "1 message made; 1 sent" in told("notify").out
    assert told("unmute", "silence:1", "--reason", "done").code == 2


def test_a_mute_of_findings_that_is_over_is_told_by_the_next_round(told, db):
    with open_store(str(db)) as store, store.connect() as connection:
        (number,) = connection.exec_driver_sql("SELECT id FROM incident").scalars()
    told("mute", f"I-{number}", "--until", "3d", "--reason", "moving machines")
    assert told("notify").out.startswith("0 messages made")
    with open_store(str(db)) as store, store.begin() as connection:
        connection.exec_driver_sql("UPDATE finding_action SET until_ns = when_ns + 1")
    assert told("notify").out.startswith("1 message made; 1 sent")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no finding to mute"),
        (["3", "--op", "x"], "both IDs and --op are given"),
        (["3", "--workload", "x"], "--workload and --device need --op"),
        (["--op", ""], "the pattern is empty"),
    ],
)
def test_a_mute_names_findings_or_a_pattern(told, words, said):
    done = told("mute", *words, "--until", "3d", "--reason", "because")
    assert done.code == 2
    assert said in done.err


@pytest.mark.parametrize(("until", "said"), [("version:v9", "ends at a time"), ("2020-01-01", "in the future")])
def test_a_mute_by_pattern_ends_at_a_time_that_lies_ahead(told, until, said):
    done = told("mute", "--op", "x", "--until", until, "--reason", "because")
    assert done.code == 2
    assert said in done.err


def test_the_payload_of_the_webhook_is_what_the_message_says(told, server):
    told("notify")
    document = server.got[0][1]["tracker"]
    assert json.loads(json.dumps(document)) == document
    assert {"schema", "event", "key", "incidents", "commands"} <= document.keys()


def test_lists_name_what_waits_for_runs(told, db):
    """gpt has 3 runs of each version, and so far 2 of v5, in which op07 takes 1.5 times as long."""
    with open_store(str(db)) as store:
        for version in range(4):
            runs(store, f"v{version + 1}", start=3 * version)
        slower(store, "v5", start=12, count=2)
    sentence = r"I-2 \(gpt v5, NVIDIA H100\) waits for 1 more run of v5, at most until \S+ \d\d:\d\d UTC\."
    assert re.search(rf"\n1 message would be sent\.\n{sentence}", told("notify", "--dry-run").out)
    assert re.search(rf"0 messages pending, 0 given up\.\n{sentence}", told("notify", "--list").out)
    assert re.search(rf"Alerts that wait for runs\n +{sentence}", told("status").out)
    assert told("notify").out.startswith("1 message made; 1 sent")
    with open_store(str(db)) as store:
        slower(store, "v5", start=14, count=1)
    assert "gpt v5" not in told("notify", "--list").out
    assert told("notify").out.startswith("1 message made; 1 sent")


@pytest.fixture
def linked(told, tmp_path, monkeypatch):
    """The same, with the addresses of pages and commits in the settings."""
    file = tmp_path / "tracker.toml"
    links = "[page]\nurl = 'https://tracker.example/'\ncommit_url = 'https://git.example/{good}..{bad}'\n"
    file.write_text(f"{file.read_text()}{links}repository = 'nowhere'\n")
    return told


def test_a_test_message_says_what_links_look_like(linked, server, tmp_path):
    out = linked("notify", "--test", "hook").out.splitlines()
    assert out == [
        "hook: delivered",
        "Messages on I-4 will link https://tracker.example/incident/I-4",
        "Messages on a change from 4af1c2d0 to 83fb3812 will link https://git.example/4af1c2d0..83fb3812",
        f"[page] repository: {tmp_path}/nowhere is no folder, so that commits are neither counted nor named; correct "
        "the setting",
    ]
    ((_, body),) = server.got
    assert body["tracker"]["url"] == "https://tracker.example/incident/I-4"
    assert "Page: https://tracker.example/incident/I-4" in body["message"]


def test_a_dry_run_shows_the_link_that_a_message_will_have(linked, server):
    assert "\nIncident I-1: https://tracker.example/incident/I-1\n" in linked("notify", "--dry-run").out
    linked("notify")
    ((_, body),) = server.got
    assert body["tracker"]["incidents"][0]["url"] == "https://tracker.example/incident/I-1"
    assert "Incident I-1: https://tracker.example/incident/I-1" in body["message"]


def test_reproducing_command_prints_the_number_of_the_alert(told):
    out = told("notify", "--dry-run").out
    (change,) = re.findall(r"small_gpt: step (\+[0-9.]+ %)", out)
    (command,) = re.findall(r"Reproduce:\n +tracker (.*)", out)
    assert change in told(*shlex.split(command)).out
