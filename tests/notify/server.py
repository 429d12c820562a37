"""A real HTTP server on this machine that answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def texts(document: Any) -> Iterator[str]:
    """All texts of a JSON document, whatever a service calls them."""
    if isinstance(document, str):
        yield document
    elif isinstance(document, list | dict):
        for one in document.values() if isinstance(document, dict) else document:
            yield from texts(one)


@dataclass(frozen=True)
class Answer:
    """What the server does with a request. `drop`: it closes the connection; `wait`: until this is set."""

    status: int = 200
    body: str = "ok"
    drop: bool = False
    wait: threading.Event | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Server:
    """`answer`: what it does with the next requests. `got`: paths and bodies of those it received."""

    answer: Answer | Callable[[int], Answer] = field(default_factory=Answer)
    got: list[tuple[str, Any]] = field(default_factory=list)
    port: int = 0
    arrived: threading.Event = field(default_factory=threading.Event)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"


@contextmanager
def serving() -> Iterator[Server]:
    """A server until the end of the block."""
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            told.got.append((self.path, json.loads(body)))
            told.arrived.set()
            answer = told.answer(len(told.got)) if callable(told.answer) else told.answer
            if answer.wait is not None:
                answer.wait.wait(10)
            if answer.drop:
                self.connection.close()
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):  # nobody reads on
                self.wfile.write(answer.body.encode())

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<form>Who are you?</form>")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    told.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield told
    server.shutdown()
    server.server_close()
