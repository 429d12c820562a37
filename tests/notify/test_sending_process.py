"""Each channel has a process that sends, which is killed where a message takes too long."""

from __future__ import annotations

import threading
import time

from tests.notify.server import Answer
from tests.reports.builders import messages
from tracker.config import Channel
from tracker.notify.sending_process import SendingProcesses

LONG_S = 4.0
"""For a message; its process takes a second to start."""


def test_a_message_that_takes_too_long_ends_with_its_process(services, server):
    server.answer = lambda number: Answer(wait=threading.Event() if number == 1 else None)
    hook = Channel(name="hook", url_env="HOOK")
    environ = {"HOOK": services["webhook"].replace("rto=0.3", "rto=60")}
    with SendingProcesses(environ, LONG_S) as send:
        began = time.monotonic()
        assert send(hook, messages.message()) == "it took too long"
        assert time.monotonic() - began < LONG_S + 2
        assert send(hook, messages.message()) is None, "a new process sends the next one"
    assert len(server.got) == 2


def test_services_that_may_hide_a_message_are_to_be_looked_at():
    environ = {"MAIL": "mailto://me:secret@localhost:1?to=you@x.example&from=me@x.example"}
    mail, none = Channel(name="mail", url_env="MAIL"), Channel(name="none", url_env="NONE")
    with SendingProcesses(environ) as send:
        assert "secret" not in str(send(mail, messages.message()))
        assert send(none, messages.message()) == "the variable NONE is not set; set it to the address"
        assert (send.to_look_at(mail), send.to_look_at(none)) == (True, False)
