"""Sends an alert to services that do harm, and prints what became of it: exit code 1 where a promise is broken.

    python scripts/attack_alerts.py                 # four minutes: two services answer for longer than 90 s
    python scripts/attack_alerts.py --seconds 10    # the same, with 10 s in place of 90 for a message

The services are servers on this machine: they answer with another address, with 3 GB, byte by byte, with what they
received, or with what is hard to read. Each takes at most MOST_REQUESTS requests and ends by itself. Promised is, of
each message: one request, none to another server, PEAK_MB of memory, an end in time, and no secret in the reason.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tracker.config import Channel  # noqa: E402
from tracker.notify.sending_process import MESSAGE_S, SendingProcesses  # noqa: E402
from tracker.results import Message  # noqa: E402

SECRET = "S3cretToken"
MOST_REQUESTS = 5
LARGE_BYTES = 3 << 30
PEAK_MB = 150
ENDS_S = 5.0
"""After the time of a message, its process is gone."""

_BLOCK = bytes(64 << 10)


@dataclass
class Service:
    """A server that answers in one way. `requests`: how many came; `sent_bytes`: of its answers."""

    answer: Callable[[Service, Handler], None]
    requests: int = 0
    sent_bytes: int = 0
    until: float = 0.0
    elsewhere: str = ""
    """The address of the server that nothing may reach."""

    port: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Handler(BaseHTTPRequestHandler):
    """Takes a request for the service of its server."""

    service: Service
    received = b""

    def do_POST(self) -> None:
        """Count the request and answer it in the way of the service."""
        self.received = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.service.lock:
            self.service.requests += 1
        if self.service.requests <= MOST_REQUESTS:
            with suppress(OSError):  # whoever asked has gone
                self.service.answer(self.service, self)
        self.close_connection = True

    do_GET = do_PUT = do_POST

    def log_message(self, format: str, *_: object) -> None:
        """Write nothing."""

    def begin(self, status: int, **headers: str) -> None:
        """Write the head of an answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def write(self, block: bytes) -> None:
        """Write a part of an answer."""
        self.wfile.write(block)
        self.service.sent_bytes += len(block)


def answer_well(_service: Service, handler: Handler) -> None:
    """Take the message."""
    handler.begin(200)
    handler.write(b"ok")


def redirect(status: int) -> Callable[[Service, Handler], None]:
    """Return what answers with another address."""

    def answer(service: Service, handler: Handler) -> None:
        handler.begin(status, Location=service.elsewhere)

    return answer


def redirect_without_end(service: Service, handler: Handler) -> None:
    """Answer with another address and 3 GB."""
    handler.begin(302, Location=service.elsewhere)
    write_much(service, handler)


def answer_much(service: Service, handler: Handler) -> None:
    """Answer with 3 GB."""
    handler.begin(200, Content_Length=str(LARGE_BYTES))
    write_much(service, handler)


def write_much(service: Service, handler: Handler) -> None:
    """Write 3 GB, as long as they are taken."""
    while service.sent_bytes < LARGE_BYTES and time.monotonic() < service.until:
        handler.write(_BLOCK)


def answer_packed(_service: Service, handler: Handler) -> None:
    """Answer with 200 kB that gzip makes 200 MB of."""
    handler.begin(200, Content_Encoding="gzip")
    handler.write(gzip.compress(bytes(200 << 20), 9))


def answer_slowly(service: Service, handler: Handler) -> None:
    """Answer byte by byte, and never end."""
    handler.begin(200)
    while time.monotonic() < service.until:
        handler.write(b"x")
        time.sleep(0.5)


def begin_slowly(service: Service, handler: Handler) -> None:
    """Never come to the end of the first line."""
    handler.write(b"HTTP/1.1 2")
    while time.monotonic() < service.until:
        handler.write(b"0")
        time.sleep(0.5)


def echo(_service: Service, handler: Handler) -> None:
    """Refuse the message with all that was received."""
    handler.begin(500)
    handler.write(f"{handler.requestline}\n{handler.headers}\n".encode() + handler.received)


def answer_deep(_service: Service, handler: Handler) -> None:
    """Answer with brackets that no parser follows to the end."""
    handler.begin(200)
    handler.write(b"[" * (60 << 10))


def answer_digits(_service: Service, handler: Handler) -> None:
    """Answer with a code of 5,000 digits."""
    handler.begin(200)
    handler.write(b'{"code": "' + b"9" * 5000 + b'"}')


@dataclass(frozen=True)
class Attack:
    """A service that does harm. `outcome`: how the message must end; `options`: of its address."""

    name: str
    answer: Callable[[Service, Handler], None]
    outcome: str = "delivered"
    options: str = ""


def redirected(status: int) -> str:
    """Return what is said of a service that answers with another address."""
    return f"it answers {status} to another address: write that one"


ATTACKS = (
    Attack("302", redirect(302), redirected(302)),
    Attack("307", redirect(307), redirected(307)),
    Attack("307, redirect=yes", redirect(307), redirected(307), "redirect=yes"),
    Attack("302 with 3 GB", redirect_without_end, redirected(302)),
    Attack("3 GB", answer_much),
    Attack("200 MB of gzip", answer_packed),
    Attack("brackets", answer_deep),
    Attack("digits", answer_digits),
    Attack("echo", echo, "it answered 500: "),
    Attack("byte by byte", answer_slowly, "it took too long"),
    Attack("no first line", begin_slowly, "it took too long"),
)


@contextmanager
def serve(service: Service) -> Iterator[None]:
    """Have the service answer within the block."""
    handler = type("OfService", (Handler,), {"service": service})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    service.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def peak_of_children() -> Iterator[list[int]]:
    """Measure the largest memory of one child of this process within the block, in bytes; a list of looks at it."""
    looks = [0]
    parent = os.getpid()
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(0.01):
            for status in Path("/proc").glob("[0-9]*/status"):
                with suppress(OSError, StopIteration):
                    lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
                    if int(lines["PPid"]) == parent and "VmHWM" in lines:
                        looks.append(int(lines["VmHWM"].split()[0]) << 10)

    watching = threading.Thread(target=look, daemon=True)
    watching.start()
    try:
        yield looks
    finally:
        is_over.set()
        watching.join()


def play(attack: Attack, seconds: float) -> bool:
    """Send a message to the service of `attack`, print what became of it, and return whether all promises were kept."""
    other = Service(answer_well)
    service = Service(attack.answer, until=time.monotonic() + seconds + 4 * ENDS_S)
    with serve(other), serve(service):
        service.elsewhere = f"http://127.0.0.1:{other.port}/"
        address = f"json://user:{SECRET}@127.0.0.1:{service.port}/{SECRET}?+X-Key={SECRET}&{attack.options}"
        message = Message(event="test", key="1", workload="", severity="info", title="a test", lines=("a line",))
        begin = time.monotonic()
        with peak_of_children() as looks, SendingProcesses({}, seconds) as send:
            reason = send(Channel(name="harm", url=address), message) or "delivered"
        took_s = time.monotonic() - begin
    peak_mb = max(looks) / 1e6
    kept = {
        "outcome": reason == attack.outcome or (attack.name == "echo" and reason.startswith(attack.outcome)),
        "requests": service.requests == 1 and other.requests == 0,
        "memory": peak_mb <= PEAK_MB,
        "time": took_s <= seconds + ENDS_S,
        "secret": SECRET.lower() not in reason.lower(),
    }
    broken = ", ".join(name for name, is_kept in kept.items() if not is_kept)
    sys.stdout.write(
        f"{attack.name:18} {service.requests:8} {other.requests:9} {service.sent_bytes / 1e6:8.1f} {peak_mb:7.0f} "
        f"{took_s:7.1f}  {reason[:60]}{f'  BROKEN: {broken}' if broken else ''}\n"
    )
    sys.stdout.flush()
    return not broken


def main() -> None:
    """Attack as the command line says; exit code 1 where a promise is broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=MESSAGE_S, help=f"what a message may take ({MESSAGE_S:g})")
    seconds = parser.parse_args().seconds
    sys.stdout.write(f"{'service':18} requests elsewhere  MB sent peak MB seconds  outcome\n")
    kept = [play(attack, seconds) for attack in ATTACKS]
    sys.exit(0 if all(kept) else 1)


if __name__ == "__main__":
    main()
