"""A small browser: requests to the application as a server passes them on, and what a page says."""

from __future__ import annotations

import asyncio
import html
import json
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from urllib.parse import urlencode, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from tracker import config
from tracker.page.access import Access, Rules
from tracker.page.app import Site, make
from tracker.store import open_store

HOST = "127.0.0.1:8642"


class Reply(Struct):
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def headline(self) -> str:
        """What the page says first."""
        return html.unescape(re.sub("<[^>]+>", "", re.search(r"<h1>(.*?)</h1>", self.text, re.DOTALL)[1])).strip()

    @property
    def json(self):
        """What a page says as a file of JSON."""
        return json.loads(self.body)

    def hrefs(self, part: str = "") -> list[str]:
        """The addresses of other pages, in this one or in what stands between two tags such as `<article>`."""
        found = re.findall(rf"<{part}.*?</{part}>", self.text, re.DOTALL) if part else [self.text]
        return [html.unescape(one) for text in found for one in re.findall(r'<a href="([^#"][^"]*)"', text)]


class Browser:
    """Requests to one server, with a cookie once it is logged in."""

    def __init__(self, path, *, client="127.0.0.1", page=None, alerts=None, named=None, **policy) -> None:
        self.access = Access(Rules(**policy))
        self.client, self.cookie, self.last = client, "", None
        own = {"page": page or config.PageRoles(), "alerts": alerts or config.Alerts()}
        settings = replace(config.load(str(path)), **own)

        def opened(writes):
            store = open_store(str(path), create=False, read_only=not writes)
            store.repository = settings.repository
            return store

        site = Site(settings, self.access, opened)
        self.app = make(replace(site, named=named) if named else site)

    def logged_in(self) -> Browser:
        cookie = self.get(f"/login?token={self.access.once}").headers["set-cookie"]
        self.cookie = cookie.partition(";")[0]
        return self

    def get(self, address, **headers) -> Reply:
        return self.send("GET", address, **headers)

    def act(self, action, targets, **fields) -> Reply:
        """A form of a page, as a browser sends it."""
        form = {"action": action, "targets": targets, "reason": "ticket 4711", "by": "li", **fields}
        return self.post(urlencode(form).encode(), sec_fetch_site="same-origin")

    def post(self, body, address="/act", **headers) -> Reply:
        return self.send("POST", address, body, content_type="application/x-www-form-urlencoded", **headers)

    def send(self, method, address, body=b"", **more) -> Reply:
        return self._run(self._sent(method, address, body, **more))

    def get_at_once(self, *addresses, of_each=()) -> list[Reply]:
        """Requests that come together; `of_each`: the headers of each."""

        async def all_of_them():
            several = zip_longest(addresses, of_each, fillvalue={})
            return await asyncio.gather(*(self._sent("GET", address, **headers) for address, headers in several))

        return self._run(all_of_them())

    def _run(self, work):
        with ThreadPoolExecutor(1) as own:  # Playwright keeps a loop in the thread of the tests
            return own.submit(lambda: asyncio.run(work)).result()

    async def _sent(self, method, address, body=b"", *, hosts=(HOST,), **headers) -> Reply:
        parts = urlsplit(address)
        named = [("host", host) for host in hosts] + [(k.replace("_", "-"), v) for k, v in headers.items() if v]
        named += [("cookie", self.cookie)] if self.cookie and "cookie" not in headers else []
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": parts.path, "raw_path": parts.path.encode(), "query_string": parts.query.encode(), "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in named],
            "client": (self.client, 1), "server": ("127.0.0.1", 8642),
        }  # fmt: skip
        sent: list[dict] = []

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            sent.append(message)

        try:
            await self.app(scope, receive, send)
        finally:
            content = b"".join(message.get("body", b"") for message in sent[1:])
            received = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
            self.last = Reply(sent[0]["status"], received, content)
        return self.last
