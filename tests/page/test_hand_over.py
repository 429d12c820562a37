"""A step of a run leaves the page as a trace: as a file, or to Perfetto; trees leave it for speedscope."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_network
from pathlib import Path

import pytest

import tracker
from tests.page.browsing import Browser
from tracker import config
from tracker.store import open_store

SAMPLES = Path(tracker.__file__).parent / "samples"
PERFETTO = b"""<!doctype html><title>Perfetto</title><script>
setTimeout(() => addEventListener("message", ({ data, source, origin }) => {
  if (data === "PING") source.postMessage("PONG", origin);
  else received = { title: data.perfetto.title, from: origin, bytes: [...new Uint8Array(data.perfetto.buffer)] };
}), 200);
var received = null;
</script>"""
CUT = "/run/1/cut.json.gz"


@pytest.fixture
def traced(tmp_path):
    """A database with two ingested traces: run 1 of v1, run 2 of v2."""
    path = tmp_path / "traced.db"
    with open_store(str(path)) as store:
        for version, folder in (("v1", "v01"), ("v2", "v08")):
            shutil.copy(SAMPLES / folder / "run1.pt.trace.json.gz", tmp_path / f"{version}.pt.trace.json.gz")
            tracker.ingest(tmp_path / f"{version}.pt.trace.json.gz", version=version, workload="gpt", store=store)
    return path


@pytest.fixture
def reader(traced):
    return Browser(traced).logged_in()


def test_a_run_offers_its_slowest_step_or_the_one_that_it_shows(reader):
    assert CUT in reader.get("/run/1").hrefs()
    assert f"{CUT}?step=5" in reader.get("/run/1?step=5").hrefs()
    assert "trace of step 5:" in reader.last.text and 'data-perfetto="https://ui.perfetto.dev"' in reader.last.text


def test_the_download_is_the_file_of_the_command(reader, traced, tmp_path):
    with open_store(str(traced)) as store:
        made = tracker.cut(1, tmp_path / "cut.json.gz", step=5, store=store)
    found = reader.get(f"{CUT}?step=5&rank=0")
    assert (found.status, found.body) == (200, (tmp_path / "cut.json.gz").read_bytes())
    assert found.headers["content-disposition"] == 'attachment; filename="run1-rank0-step5.json.gz"'
    assert found.headers["content-length"] == str(made.bytes) and found.headers["cache-control"] == "no-store"


def test_every_reader_may_have_it_after_a_login(traced):
    proxied = Browser(traced, header="x-forwarded-user", proxies=(ip_network("10.0.0.0/8"),), client="10.0.0.5")
    assert proxied.get(CUT, x_forwarded_user="li").status == 200
    assert Browser(traced).get(CUT).status == 401


@pytest.mark.parametrize(("address", "status"), [
    (f"{CUT}?step=99", 400), (f"{CUT}?rank=7", 400), (f"{CUT}?step=x", 400), (f"{CUT}?path=/etc/passwd", 400),
    ("/run/99/cut.json.gz", 404), ("/run/..%2f..%2fetc%2fpasswd/cut.json.gz", 404), ("/run/x/cut.json.gz", 404),
])  # fmt: skip
def test_what_is_no_step_of_a_run_is_one_sentence(reader, address, status):
    found = reader.get(address)
    assert found.status == status and found.headline and "root:" not in found.text


def test_a_source_that_changed_or_is_gone_is_one_sentence(reader, tmp_path):
    path = tmp_path / "v1.pt.trace.json.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b" "))
    assert "has another content than when it was ingested" in reader.get(CUT).headline
    path.unlink()
    run = reader.get("/run/1")
    assert f"its file is not there: <code>{path}</code>" in run.text and CUT not in run.hrefs()
    assert run.headers["cross-origin-opener-policy"] == "same-origin"
    assert reader.get(CUT).headline == f"{path}: no such file any more; put the file back"
    assert reader.last.status == 503


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_file_that_may_not_be_looked_at_is_missing(reader, traced):
    """A name that no file system takes fails as a folder without permission does, which root never sees."""
    with closing(sqlite3.connect(traced)) as connection, connection:
        connection.execute("UPDATE source SET path = ? WHERE run_id = 1", (f"/{'x' * 300}.json.gz",))
    run = reader.get("/run/1")
    assert run.status == 200 and "its file is not there" in run.text and CUT not in run.hrefs()


def test_a_run_without_a_trace_offers_none(tmp_path):
    summary = next((Path(__file__).parents[1] / "data" / "paddle_summary").glob("*.txt"))
    with open_store(str(tmp_path / "t.db")) as store:
        tracker.ingest(summary, version="v1", workload="gpt", store=store)
    page = Browser(tmp_path / "t.db").logged_in()
    found = page.get("/run/1")
    assert "cut.json.gz" not in found.text and "perfetto" not in found.text
    assert found.headers["cross-origin-opener-policy"] == "same-origin"
    assert page.get(CUT).status == 400 and "paddle_summary, of which no step can be cut" in page.last.headline


def test_only_the_page_that_hands_over_keeps_its_window(reader):
    assert reader.get("/run/1").headers["cross-origin-opener-policy"] == "same-origin-allow-popups"
    for address in ("/", "/runs", "/diff?side=v1&side=v2", CUT):
        headers = reader.get(address).headers
        assert headers["cross-origin-opener-policy"] == "same-origin", address
        assert "; connect-src 'self';" in headers["content-security-policy"], address


def test_without_an_address_of_perfetto_there_is_a_download_only(traced):
    found = Browser(traced, page=config.PageRoles(perfetto="")).logged_in().get("/run/1")
    assert CUT in found.hrefs() and "data-perfetto" not in found.text


def test_trees_are_offered_for_speedscope(reader):
    for address, profiles in (("/run/1", 1), ("/run/1?by=module", 1), ("/diff?side=v1&side=v2&by=op&depth=2", 2)):
        link = next(one for one in reader.get(address).hrefs() if ".speedscope.json" in one)
        found = reader.get(link)
        assert found.status == 200 and len(json.loads(found.text)["profiles"]) == profiles, address
        assert found.headers["content-disposition"].endswith('.speedscope.json"')
    assert "speedscope" not in reader.get("/diff?side=v1&side=v2&side=v1&by=op").text
    assert reader.get("/diff.speedscope.json?side=v1&side=v2&side=v1").status == 400


@contextmanager
def perfetto_here():
    """A server that stands in for Perfetto, at another address than the pages."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(PERFETTO if self.path == "/" else b"")

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


CALL = "a[href*='#ts=']"
"""The link of a call, the slowest one first."""


@pytest.mark.parametrize(("path", "selector"), [
    ("/run/1?step=5", "[data-perfetto]"), ("/run/1/calls?calls=aten::mm&step=5", CALL),
])  # fmt: skip
def test_a_button_opens_perfetto_with_the_trace(browser, traced, tmp_path, path, selector):
    with perfetto_here() as perfetto:
        (tmp_path / "tracker.toml").write_text(f'[page]\nperfetto = "{perfetto}"\n')
        command = [sys.executable, "-m", "tracker", "page", "--listen", "127.0.0.1:0", "--db", str(traced)]
        env = {**os.environ, "PYTHONUNBUFFERED": "1", "TRACKER_CONFIG": str(tmp_path / "tracker.toml")}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env) as served:
            address = served.stdout.readline().strip()
            try:
                with browser.visited(address) as page:
                    page.wait_for_url("**/")
                    page.goto(f"{address.partition('/login')[0]}{path}")
                    with page.context.expect_page() as opened:
                        page.locator(selector).first.click()
                    other, said = opened.value, []
                    other.on("console", lambda message: said.append(message.text))
                    other.wait_for_function("received !== null")
                    found, chosen = other.evaluate("received"), other.evaluate("location.hash")
                    assert said == [] and page.locator("[role=status]").first.text_content() == ""
            finally:
                served.send_signal(signal.SIGINT)
    assert (found["title"], found["from"]) == ("run 1, step 5", address.partition("/login")[0])
    events = json.loads(gzip.decompress(bytes(found["bytes"])))["traceEvents"]
    assert "ProfilerStep#5" in [event["name"] for event in events]
    if selector == CALL:
        ts, dur = (int(number) for number in re.match(r"#!/\?ts=(\d+)&dur=(\d+)&", chosen).groups())
        spans = [event for event in events if event.get("ph") == "X" and event["name"] == "aten::mm"]
        # of all calls of the step it is the slowest one
        slowest = max(spans, key=lambda event: event["dur"])
        assert (round(slowest["ts"] * 1_000), round(slowest["dur"] * 1_000)) == (ts, dur)


def test_rows_of_a_run_lead_to_their_calls(reader):
    links = [one for one in reader.get("/run/1").hrefs() if "/calls?" in one]
    assert {"operator"} <= {one.partition("calls-of=")[2].partition("&")[0] for one in links}
    found = reader.get(next(one for one in links if "calls=aten%3A%3Amm" in one))
    assert found.status == 200 and re.match(r"aten::mm: \d+ calls, [\d.,]+ ms together; median", found.headline)
    assert found.headers["cross-origin-opener-policy"] == "same-origin-allow-popups"
    step = next(one for one in found.hrefs() if "#ts=" in one)
    assert reader.get(step.partition("#")[0]).status == 200


def test_calls_of_a_file_that_is_gone_are_what_is_stored(reader, tmp_path):
    (tmp_path / "v1.pt.trace.json.gz").unlink()
    found = reader.get("/run/1/calls?calls=aten::mm")
    assert found.status == 200 and "#ts=" not in found.text
    assert "The calls cannot be read again" in found.text and "no such file any more" in found.text


@pytest.mark.parametrize(("query", "status"), [
    ("calls=nope", 400), ("calls=aten::mm&calls-of=x", 400), ("calls=aten::mm&path=/etc/passwd", 400),
    ("calls=aten::mm&step=99", 400),
])  # fmt: skip
def test_what_is_no_call_of_a_run_is_one_sentence(reader, query, status):
    found = reader.get(f"/run/1/calls?{query}")
    assert found.status == status and found.headline
