"""Messages on their way through apprise's own plugins to a real server, which does not always take them."""

from __future__ import annotations

import html
import json
import os
import signal
import subprocess
import sys
import threading

import pytest
import requests

from tests.notify.made import MINUTE, NOW, alerts
from tests.notify.server import Answer, serving, texts
from tests.reports.builders import messages
from tracker import notify
from tracker.config import Channel
from tracker.notify import Alarm, Delivered
from tracker.notify.sending import Sender
from tracker.store import notifications, open_store

NAMES = ("feishu", "lark", "dingtalk", "wecom", "webhook")


def send(services, name, message=None, **more):
    """Why a message did not arrive at a service; None: it did."""
    channel = Channel(name=name, url_env="ADDRESS", **more)
    return Sender({"ADDRESS": services[name]})(channel, message or messages.message())


@pytest.mark.parametrize("name", NAMES)
def test_a_message_arrives(services, server, name):
    server.answer = Answer(body='{"code": 0, "errcode": 0}')
    assert send(services, name) is None
    ((path, body),) = server.got
    assert "S3cretToken" in path
    assert "step +7.5 %" in str(body)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(500, "out of order"), "it answered 500: out of order"),
        (Answer(drop=True), "it cannot be reached, or the connection broke"),
        (Answer(200, '{"code": 19021, "msg": "sign match fail"}'), "it answered 200 with code 19021: sign match fail"),
        (Answer(200, '{"errcode": 310000, "errmsg": "keywords not in content"}'),
         "it answered 200 with errcode 310000: keywords not in content"),
        (Answer(200, '{"StatusCode": 9499, "StatusMessage": "bad"}'), "it answered 200 with StatusCode 9499: bad"),
        (Answer(200, '{"ok": false, "error": "no"}'), "it answered 200 with ok false: no"),
    ],
)  # fmt: skip
def test_a_service_that_does_not_take_it_is_a_failure_with_its_reason(services, server, name, answer, why):
    server.answer = answer
    assert send(services, name) == why


def test_a_service_that_does_not_answer_is_a_failure(services, server):
    server.answer = Answer(wait=threading.Event())
    assert send(services, "webhook") == "it did not answer in time"
    server.answer.wait.set()


def test_a_service_that_is_not_there_is_a_failure(services, server):
    assert send({"webhook": "json://127.0.0.1:1/x"}, "webhook") == "it cannot be reached, or the connection broke"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("options", ["", "&redirect=yes"])
def test_redirect_is_a_failure_and_nothing_is_sent_elsewhere(services, server, status, options):
    """A 302 would become a GET without the message, a 307 hands message and secrets to another host."""
    with serving() as other:
        server.answer = Answer(status, headers={"Location": f"http://{other.host}/"})
        services["webhook"] += options
        assert send(services, "webhook") == f"it answers {status} to another address: write that one"
        assert (len(server.got), other.got) == (1, [])


@pytest.mark.parametrize(("size", "why"), [(65_536, "it answered 200 with errcode 1"), (8_000_000, None)])
def test_the_first_64_kb_of_an_answer_are_read(services, server, size, why):
    server.answer = Answer(body='{"errcode": 1}'.rjust(size))
    assert send(services, "feishu") == why


@pytest.mark.parametrize("body", ["[" * 60_000, '{"code": "' + "9" * 5_000 + '"}'], ids=["brackets", "digits"])
def test_an_answer_that_no_parser_reads_says_nothing(services, server, body):
    server.answer = Answer(body=body)
    assert send(services, "webhook") is None


def test_a_webhook_gets_the_message_for_machines_with_a_schema(services, server):
    assert send(services, "webhook") is None
    ((_, body),) = server.got
    document = body["tracker"]
    assert (document["schema"], document["event"]) == (1, "opened")
    assert document["incidents"][0]["shown"][0]["name"] == "aten::mm"
    assert "[critical] gpt: step +7.5 %" in str(body)


def test_a_webhook_that_repeats_the_status_took_the_message(services, server):
    server.answer = Answer(200, '{"code": 200, "message": "accepted"}')
    assert send(services, "webhook") is None


def test_wecom_gets_no_more_bytes_than_it_takes(services, server):
    long = messages.message("opened", messages.told(shown=(messages.finding("算子" * 30, 1, 2),) * 5))
    assert send(services, "wecom", long) is None
    text = max(texts(server.got[0][1]), key=len)
    assert len(text.encode()) <= 2048
    assert "tracker opened I-12" in text


def test_a_name_that_would_ping_everybody_in_slack_does_not(server, monkeypatch):
    from apprise.plugins.slack import NotifySlack

    monkeypatch.setattr(NotifySlack, "webhook_url", f"http://{server.host}")
    evil = messages.finding("<!channel> <@U123> @here <http://evil.example|x> *y* f<int>", 1, 2)
    message = messages.message("opened", messages.told(shown=(evil,), by_step=False))
    slack = {"slack": "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"}
    assert send(slack, "slack", message) is None
    text = str(server.got[0][1])
    assert "f&lt;int&gt;" in text
    for ping in ("<!", "<@", "@here", "://evil"):
        assert ping not in text


NASTY = "tracker diff 'a`b <c> & *d* \\g' v2 --workload x@H100"


@pytest.mark.parametrize(
    "address",
    [
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
        "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
        "tgram://123456789:abcdefg_hijklmnop/12315544",
        "dingtalk://S3cretToken?format=markdown",
    ],
)
def test_a_command_arrives_letter_by_letter(monkeypatch, address):
    sent = []

    def answer(self, request, **_):
        sent.append(json.loads(request.body))
        taken = requests.Response()
        taken.status_code, taken._content = 200, b"ok"
        return taken

    monkeypatch.setattr(requests.Session, "send", answer)
    message = messages.message(commands={"reproduce": NASTY})
    Sender({"ADDRESS": address})(Channel(name="x", url_env="ADDRESS"), message)
    assert any(NASTY in html.unescape(one) for one in texts(sent[0]))


def test_the_form_of_a_channel_can_be_chosen(services, server):
    assert send(services, "feishu", form="short") is None
    assert send(services, "feishu", form="long") is None
    short, long = (sum(map(len, texts(body))) for _, body in server.got)
    assert short < long


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("", "the variable ADDRESS is not set"),
        ("S3cretToken", "the address is none that apprise knows"),
        ("feishu://S3cret Token!", "the address is none that apprise knows"),
    ],
)
def test_a_wrong_address_is_said_without_it(address, why, capfd):
    reason = Sender({"ADDRESS": address})(Channel(name="x", url_env="ADDRESS"), messages.message())
    assert reason.startswith(why)
    assert "S3cret" not in reason + "".join(capfd.readouterr())


def test_two_watchers_send_each_message_once(services, server, database_url):
    settings = alerts(channels=("webhook",))
    with open_store(database_url) as store:
        for number in range(10):
            notify.alarm(store, settings, Alarm(str(number), "watcher", "", "x"), now_ns=NOW)
    stores = [open_store(database_url) for _ in range(2)]
    environ = {"webhook": services["webhook"]}
    threads = [
        threading.Thread(target=notify.deliver, args=(one, settings), kwargs={"now_ns": NOW, "environ": environ})
        for one in stores
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.close()
    keys = [body["tracker"]["key"] for _, body in server.got]
    assert len(keys) == len(set(keys)) == 10


KILLED = """
import sys
from tests.notify.made import NOW, alerts
from tracker import notify
from tracker.store import open_store
with open_store(sys.argv[1]) as store:
    notify.deliver(store, alerts(channels=("webhook",)), now_ns=NOW, environ={"webhook": sys.argv[2]})
"""


def test_a_sender_that_is_killed_while_it_sends_leaves_the_message_to_the_next(services, server, tmp_path):
    database, settings = str(tmp_path / "t.db"), alerts(channels=("webhook",))
    address = services["webhook"].replace("rto=0.3", "rto=9")
    with open_store(database) as store:
        notify.alarm(store, settings, Alarm("1", "watcher", "", "x"), now_ns=NOW)
    server.answer = Answer(wait=threading.Event())
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen([sys.executable, "-c", KILLED, database, address], env=environ)
    assert server.arrived.wait(20)
    process.send_signal(signal.SIGKILL)
    process.wait()
    server.answer.wait.set()
    server.answer = Answer()
    with open_store(database) as store:
        later = {"environ": {"webhook": services["webhook"]}}
        assert notify.deliver(store, settings, now_ns=NOW + MINUTE, **later) == Delivered(sent=1)
        assert notifications.listed(store).frame.empty
    first, second = (body["tracker"] for _, body in server.got)
    assert first == second
