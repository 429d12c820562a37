"""What a service answered to a message, which apprise does not tell.

Its plugins say True or False by the HTTP status alone: Feishu, Lark, DingTalk and WeCom refuse a message with status
200 and a code in the body, and the reason of a failure goes to a log, with the address in it. So the answers are read
where every plugin's requests pass, for the thread that is sending and no other; logs of that thread go nowhere.

A service that answers with another address does not get the message a second time: a redirect makes a GET without the
message of it, or hands message and secrets to whatever host the answer names. Of an answer only the start is read.
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


MOST_BYTES: Final = 64 << 10
"""Of an answer that are read. Services answer with a sentence; an answer may be as long as a disk, or have no end."""

_BLOCK_BYTES: Final = 8 << 10
_MOST_DIGITS: Final = 18
"""Of a code in an answer; Python refuses to read a number of 5,000."""


class Heard(Struct):
    """What came back while a message was sent. `refusals`: what makes it a failure, whatever its plugin says."""

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
    except (ValueError, RecursionError):
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
    digits = text.removeprefix("-")
    return int(text) if digits.isdecimal() and digits.isascii() and len(digits) <= _MOST_DIGITS else None


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

    plain = requests.adapters.HTTPAdapter.send

    def send(self: Any, request: Any, *arguments: Any, **options: Any) -> Any:
        heard = _listening.get()
        if heard is None:
            return plain(self, request, *arguments, **options)
        try:
            answer = plain(self, request, *arguments, **options)
            _read_start(answer)
        except requests.RequestException as error:
            heard.problems.append(_failure(error))
            raise
        _hear(heard, answer)
        return answer

    requests.adapters.HTTPAdapter.send = send  # type: ignore[method-assign]
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_Quiet())


def _read_start(answer: Any) -> None:
    """Read the first MOST_BYTES of an answer; from then on they are all of it."""
    content = b""
    for block in answer.iter_content(_BLOCK_BYTES):
        content += block
        if len(content) >= MOST_BYTES:
            break
    answer._content = content[:MOST_BYTES]
    answer._content_consumed = True
    answer.close()


def _hear(heard: Heard, answer: Any) -> None:
    status = int(answer.status_code)
    if answer.is_redirect:
        # whatever apprise is told by `redirect=yes` of an address: without it nothing can be followed
        del answer.headers["Location"]
        heard.refusals.append(f"it answers {status} to another address: write that one")
        return
    if 200 <= status < 300:
        refusal = refusal_in(status, answer.text)
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
    ):
        if isinstance(error, kind):
            return words
    return f"the request failed ({type(error).__name__})"
