"""Sends one message to one channel with apprise, in the form that suits the channel, and says why it failed."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from tracker.config import Channel
from tracker.notify._answers import listening
from tracker.notify.addresses import BadAddress, address_of, parts_of, scrubbed
from tracker.reports.message import Limits, Written, write
from tracker.results import Message

Send = Callable[[Channel, Message], "str | None"]
"""Sends a message to a channel; why it failed, without secrets, or None: it was delivered."""

_SHORT_BELOW: Final = 4097
"""Channels whose messages hold no more characters get the short form."""

_BYTES: Final = frozenset({"NotifyWeComBot", "NotifyWeChat"})
"""Services that count bytes, not characters."""

_AS_HTML: Final = frozenset({"NotifyTelegram"})
"""Services whose Markdown knows no code with a backtick, and to whom apprise hands a text unescaped, as HTML."""

_PLAIN_TITLES: Final = frozenset({"NotifySlack", "NotifyMatrix", "NotifyPushover"})
"""Services that take Markdown, but show a title as it stands."""

_TELLS_NOTHING: Final = frozenset({"NotifyFeishu", "NotifyLark", "NotifyDingTalk", "NotifyWeComBot", "NotifyEmail"})
"""Services that may take a message and drop it: keyword rules, spam filters."""

_LONGEST_REASON: Final = 200
"""Characters of why a message failed."""


class _Open(Struct, frozen=True):
    """A channel that is ready. `secrets`: parts of its address."""

    plugin: Any
    secrets: tuple[str, ...]

    @property
    def name(self) -> str:
        """Class of the service."""
        return type(self.plugin).__name__


class Sender:
    """Sends in this process, however long it takes; `sending_process` has processes that end in time.

    Each channel is opened once, so that apprise keeps to the service's rate; one thread at a time may send to it.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._open: dict[str, _Open] = {}

    def __call__(self, channel: Channel, message: Message) -> str | None:
        """Send `message`; why it failed, without secrets, or None."""
        try:
            if channel.name not in self._open:
                self._open[channel.name] = _opened(channel, self._environ)
        except BadAddress as problem:
            return str(problem)
        except Exception as error:  # noqa: BLE001 its text may hold the address; no channel may harm another
            return f"it cannot be opened ({type(error).__name__})"
        found = self._open[channel.name]
        with listening() as heard:
            try:
                delivered = _notify(found, channel, message)
            except Exception as error:  # noqa: BLE001 what plugins raise is their own; no channel may harm another
                heard.problems.append(f"its plugin failed ({type(error).__name__})")
                delivered = False
        if delivered and not heard.refusals:
            return None
        # cut last: half of a secret would not be known as one
        return " ".join(scrubbed(heard.why, found.secrets).split())[:_LONGEST_REASON]

    def to_look_at(self, channel: Channel) -> bool:
        """Whether the service may say that it took a message, and not show it."""
        return channel.name in self._open and self._open[channel.name].name in _TELLS_NOTHING


def _opened(channel: Channel, environ: Mapping[str, str]) -> _Open:
    import apprise

    address = address_of(channel, environ)
    with listening():
        asset = apprise.AppriseAsset(app_id="tracker", app_desc="tracker", async_mode=False, http_redirects=False)
        plugin = apprise.Apprise.instantiate(address, asset=asset, suppress_exceptions=True)
    if plugin is None:
        raise BadAddress("the address is none that apprise knows; see its wiki for how addresses are written")
    return _Open(plugin, parts_of(address))


def _notify(found: _Open, channel: Channel, message: Message) -> bool:
    import apprise

    plugin = found.plugin
    form = channel.form or default_form(found.name, plugin.body_maxlen)
    takes_markdown = apprise.NotifyFormat.MARKDOWN in plugin._formats() and found.name not in _BYTES | _AS_HTML
    markdown = form != "json" and takes_markdown
    escaped = form != "json" and found.name in _AS_HTML
    written = _written(found, message, form, is_marked_up=markdown or escaped, markdown=markdown)
    if form == "json" and found.name == "NotifyJSON":
        # the payload of json:// takes more keys; a number or table as a value stays one
        document = msgspec.json.decode(written.body)
        plugin.payload_extras = {**plugin.payload_extras, "tracker": document}
        written = _written(found, message, "short", markdown=False, is_marked_up=False)
    kind = {"critical": "failure", "info": "info"}.get(message.severity, "warning")
    return bool(
        plugin.notify(
            body=html.escape(written.body, quote=False) if escaped else written.body,
            title=written.title,
            notify_type="success" if message.event in {"recovered", "budget_met", "test"} else kind,
            body_format=None if form == "json" else "markdown" if markdown else "html" if escaped else "text",
        )
    )


def default_form(service: str, body_maxlen: int) -> str:
    """The form that suits a service: json for webhooks, short where messages are short.

    >>> default_form("NotifyJSON", 32768), default_form("NotifyWorkflows", 1000), default_form("NotifySlack", 35000)
    ('json', 'short', 'long')
    """
    if service == "NotifyJSON":
        return "json"
    return "short" if body_maxlen < _SHORT_BELOW else "long"


def _written(found: _Open, message: Message, form: str, *, markdown: bool, is_marked_up: bool) -> Written:
    """The message as the channel can take it; what is marked up may grow when it is translated."""
    plugin = found.plugin
    room = int(plugin.body_maxlen * (0.9 if is_marked_up else 1.0))
    title = max(0, plugin.title_maxlen)
    if plugin.overflow_amalgamate_title:
        room -= title + 2
    limits = Limits(room, title, size=_bytes if found.name in _BYTES else len, plain_title=found.name in _PLAIN_TITLES)
    return write(message, form, markdown=markdown, limits=limits)


def _bytes(text: str) -> int:
    return len(text.encode())
