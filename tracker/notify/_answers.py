"""What a service answered to a message, which apprise does not tell.

Its plugins say True or False by the HTTP status alone: Feishu, Lark, DingTalk and WeCom refuse a message with status
200 and a code in the body, and the reason of a failure goes to a log, with the address in it. So the answers are read
where every plugin's requests pass, for the thread that is sending and no other; logs of that thread go nowhere.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, Final

from msgspec import Struct, field

_LOGGERS: Final = ("apprise", "urllib3.connectionpool", "urllib3.util.retry", "requests_oauthlib", "oauthlib")
_CODES: Final = ("errcode", "StatusCode", "code")
_WORDS: Final = ("errmsg", "StatusMessage", "msg", "message", "error", "description")


class Heard(Struct):
    """What came back while a message was sent. `refusals`: of services that answered with status 2xx all the same."""

    refusals: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    @property
    def why(self) -> str:
        """The best that is known of a failure, whole; may hold parts of the address."""
        return next((said[-1] for said in (self.refusals, self.problems, self.log) if said), "it was not delivered")


_listening: ContextVar[Heard | None] = ContextVar("_listening", default=None)


@contextmanager
def listening() -> Iterator[Heard]:
    """What services answer to this thread, from here on."""
    _install()
    heard = Heard()
    token = _listening.set(heard)
    try:
        yield heard
    finally:
        _listening.reset(token)


def refusal_in(status: int, body: str) -> str | None:
    """Why a service did not take a message although its status says so; None: it took it, as far as one can tell.

    >>> refusal_in(200, '{"errcode": 310000, "errmsg": "keywords not in content"}')
    'it answered 200 with errcode 310000: keywords not in content'
    >>> refusal_in(200, '{"code": 0}'), refusal_in(200, '{"code": 200}'), refusal_in(200, "ok")
    (None, None, None)
    """
    try:
        said = json.loads(body)
    except ValueError:
        return None
    if not isinstance(said, dict):
        return None
    words = next((f": {said[word]}" for word in _WORDS if isinstance(said.get(word), str) and said[word]), "")
    for name in _CODES:
        code = _number(said.get(name))
        # a webhook of one's own may repeat the HTTP status
        if code is not None and code != 0 and not (name != "errcode" and 200 <= code < 300):
            return f"it answered {status} with {name} {code}{words}"
    for name in ("ok", "success"):
        if said.get(name) is False:
            return f"it answered {status} with {name} false{words}"
    return None


def _number(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    text = str(value).strip()
    return int(text) if text.lstrip("-").isdecimal() and text.isascii() else None


class _Quiet(logging.Filter):
    """Keeps what is logged by a thread that sends: an address may be in it."""

    def filter(self, record: logging.LogRecord) -> bool:
        heard = _listening.get()
        if heard is None:
            return True
        if record.levelno >= logging.WARNING:
            heard.log.append(record.getMessage())
        return False


@cache
def _install() -> None:
    """Put the listener where all requests pass, once; without anybody listening it changes nothing."""
    import requests

    plain = requests.Session.send

    def send(self: Any, request: Any, **options: Any) -> Any:
        heard = _listening.get()
        if heard is None:
            return plain(self, request, **options)
        try:
            answer = plain(self, request, **options)
        except requests.RequestException as error:
            heard.problems.append(_failure(error))
            raise
        _hear(heard, answer)
        return answer

    requests.Session.send = send  # type: ignore[method-assign]
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_Quiet())


def _hear(heard: Heard, answer: Any) -> None:
    status = int(answer.status_code)
    if 200 <= status < 300:
        refusal = refusal_in(status, answer.text)
        # a message that is redirected arrives without its text; services that redirect answer with data, logins do not
        if answer.history and "html" in answer.headers.get("Content-Type", ""):
            refusal = "it redirected to a page, as to a login"
        if refusal is not None:
            heard.refusals.append(refusal)
        return
    words = answer.text.strip()
    heard.problems.append(f"it answered {status}" + (f": {words}" if words else ""))


def _failure(error: Exception) -> str:
    """A failure without what requests says of it: that has the address in it."""
    import requests

    for kind, words in (
        (requests.exceptions.SSLError, "its certificate is not accepted"),
        (requests.exceptions.ConnectTimeout, "it cannot be reached in time"),
        (requests.exceptions.Timeout, "it did not answer in time"),
        (requests.exceptions.ProxyError, "the proxy does not let it through"),
        (requests.exceptions.ChunkedEncodingError, "the connection broke"),
        (requests.exceptions.ConnectionError, "it cannot be reached, or the connection broke"),
        (requests.exceptions.TooManyRedirects, "it redirects in a circle"),
    ):
        if isinstance(error, kind):
            return words
    return f"the request failed ({type(error).__name__})"
