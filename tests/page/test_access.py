"""Who is let in, who may act, and that nothing changes where that is refused: section by section with real requests."""

from __future__ import annotations

from ipaddress import ip_network
from urllib.parse import urlencode

import pytest

from tests.cli.support import content
from tests.page.browsing import HOST, Browser
from tracker.page.answers import Answer
from tracker.page.app import ACTIONS
from tracker.page.links import PAGES, suffix
from tracker.reports.document import Document

PROXY = {"header": "x-forwarded-user", "proxies": (ip_network("10.0.0.0/8"),)}
FORM = urlencode({"action": "ack", "targets": "I-1", "reason": "ticket 4711"}).encode()
EVERY = [
    *(page.path.format("I-1" if name == "incident" else 3) for name, page in PAGES.items()),
    *(f"/{name}.json" for name in ("board", "findings", "runs", "status", "log", "history")), "/nowhere",
    "/run/1/cut.json.gz",
]  # fmt: skip


@pytest.fixture
def unchanged(db):
    """A test after which the database is as it was before."""
    before = content(db)
    yield
    assert content(db) == before


@pytest.mark.parametrize("address", EVERY)
def test_without_login_no_page_says_anything(db, address):
    found = Browser(db).get(address)
    assert found.status == 401 and "gpt" not in found.text and "<nav" in found.text
    assert found.hrefs() == []


def wanted_of(reply):
    """The cookie that a refusal sets, as a browser sends it back."""
    return reply.headers.get("set-cookie", "").partition(";")[0]


@pytest.mark.parametrize("address", ["/incident/I-1", "/findings?workload=gpt&version=v%202", "/"])
def test_a_login_leads_on_to_the_page_that_was_asked_for(db, address):
    """As from the link of an alert, in a browser without a cookie."""
    page = Browser(db)
    refused = page.get(address)
    assert refused.status == 401 and refused.headline.startswith("Log in first: open the address")
    cookie = refused.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie and "path=/login" in cookie
    done = page.get(f"/login?token={page.access.once}", cookie=wanted_of(refused))
    assert done.status == 200 and done.hrefs() == [address]
    assert f'content="0;url={address.replace("&", "&amp;")}"' in done.text


@pytest.mark.parametrize("address", ["/page.css", "/favicon.ico", "/board.json", "/nowhere", f"/search?q={'x' * 5000}",
                                     "/incident/I-1/.."])  # fmt: skip
def test_what_is_no_page_is_not_led_on_to(db, address):
    assert wanted_of(Browser(db).get(address)) == ""


@pytest.mark.parametrize("wanted", [
    "https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/incident/I-1%22%3E%3Cscript",
    "%2F%2Fevil.example", "/logout", "/act", "/incident/%0d%0aX", "", "x" * 9000,
])  # fmt: skip
def test_a_made_up_cookie_leads_nowhere_else(db, wanted):
    page = Browser(db)
    done = page.get(f"/login?token={page.access.once}", cookie=f"tracker-wanted={wanted}")
    assert done.status == 200
    (address,) = done.hrefs()
    assert address == "/" or (address.startswith("/incident/") and "<script" not in done.text)


def test_the_used_address_leads_who_is_logged_in_to_the_board(db):
    page = Browser(db).logged_in()
    again = page.get(f"/login?token={page.access.once}")
    assert (again.status, again.headers["location"]) == (303, "/")
    assert page.get("/login?token=x").status == 303 and page.get("/").status == 200


def test_who_comes_by_a_proxy_is_not_asked_to_log_in(db):
    refused = Browser(db, client="10.0.0.1", **PROXY).get("/incident/I-1")
    assert (refused.status, wanted_of(refused)) == (401, "")
    assert refused.headline == "The proxy named no user, or several, in x-forwarded-user"


def test_the_token_works_once(db):
    page = Browser(db)
    first, second = (page.get(f"/login?token={page.access.once}") for _ in range(2))
    assert (first.status, second.status) == (200, 401)
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "path=/" in cookie
    assert page.access.once not in first.text + cookie and 'content="0;url=/"' in first.text


@pytest.mark.parametrize("token", ["", "x", "\u00e9", "x" * 5000])
def test_wrong_tokens_and_cookies_are_refused(db, token):
    page = Browser(db)
    assert page.get(f"/login?token={urlencode({'': token})[1:]}").status == 401
    assert page.get("/", cookie=f"tracker={token.encode().decode('latin-1')}").status == 401
    assert page.logged_in().get("/").status == 200


@pytest.mark.parametrize("read_only", [True, False])
def test_a_logout_ends_the_session_and_no_other(db, read_only):
    page = Browser(db, token="0123456789abcdef", read_only=read_only)
    other = page.get("/login?token=0123456789abcdef").headers["set-cookie"].partition(";")[0]
    page.logged_in()
    assert 'action="/logout"' in page.get("/").text
    assert page.post(b"", "/logout", sec_fetch_site="cross-site").status == 403 and page.get("/").status == 200
    done = page.post(b"", "/logout", sec_fetch_site="same-origin")
    assert done.status == 200 and "logged out" in done.headline and "Max-Age=0" in done.headers["set-cookie"]
    assert page.get("/").status == 401 and page.get("/", cookie=other).status == 200


def test_who_comes_by_a_proxy_has_no_logout(db):
    page = Browser(db, client="10.0.0.1", **PROXY)
    assert 'action="/logout"' not in page.get("/", x_forwarded_user="li").text


def test_looking_at_the_login_by_head_does_not_use_the_token(db):
    page = Browser(db)
    assert page.send("HEAD", f"/login?token={page.access.once}").status == 401
    assert page.logged_in().get("/").status == 200


def test_the_token_of_a_file_works_again_and_may_not_change_runs(db):
    page = Browser(db, token="0123456789abcdef")
    for _ in range(2):
        found = page.get("/login?token=0123456789abcdef")
        assert found.status == 200
    page.cookie = found.headers["set-cookie"].partition(";")[0]
    assert page.act("exclude", "run:9").status == 403
    assert page.act("ack", "I-1").status == 303


@pytest.mark.parametrize("hosts", [("evil.example",), ("127.0.0.1.evil.example",), (), (HOST, HOST),
                                   ("evil@127.0.0.1",), ("127.0.0.1:x",), ("",), ("[::1",)])  # fmt: skip
def test_a_foreign_host_is_refused_even_with_a_cookie(page, hosts, unchanged):
    for address in ("/", "/page.css", "/login?token=x"):
        assert page.send("GET", address, hosts=hosts).status == 400
    assert page.send("POST", "/act", FORM, hosts=hosts, sec_fetch_site="same-origin").status == 400


@pytest.mark.parametrize("hosts", [("localhost",), ("LOCALHOST:9000",), ("[::1]:8642",), ("127.0.0.1",)])
def test_names_of_this_machine_are_let_in_through_any_tunnel(page, hosts):
    assert page.send("GET", "/", hosts=hosts).status == 200


@pytest.mark.parametrize("headers", [
    {"sec_fetch_site": "cross-site"}, {"sec_fetch_site": "same-site"}, {"sec_fetch_site": "none"},
    {"sec_fetch_site": "cross-site", "origin": f"http://{HOST}"}, {"origin": "http://evil.example"},
    {"origin": "http://127.0.0.1:9999"}, {"origin": "null"}, {},
])  # fmt: skip
@pytest.mark.parametrize("needs_token", [True, False])
def test_posts_from_elsewhere_are_refused(db, headers, needs_token, unchanged):
    page = Browser(db, needs_token=needs_token)
    if needs_token:
        page.logged_in()
    assert page.post(FORM, **headers).status == 403


def test_a_post_with_the_own_origin_is_done(page):
    assert page.post(FORM, origin=f"http://{HOST}").status == 303


def test_a_post_without_a_cookie_is_refused(db, unchanged):
    assert Browser(db).post(FORM, sec_fetch_site="same-origin").status == 401


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(page, method, unchanged):
    assert page.send(method, "/act", FORM, sec_fetch_site="same-origin").status == 405


def test_reading_only_has_no_forms_and_changes_nothing(db, unchanged):
    page = Browser(db, read_only=True).logged_in()
    for address in ("/findings", "/incident/I-1", "/finding/3", "/run/9", "/runs"):
        assert 'action="/act"' not in page.get(address).text
    for action in ACTIONS:
        assert page.act(action, "I-1").status == 403


def test_a_proxy_names_the_user_who_is_who_of_the_event(db):
    page = Browser(db, client="10.1.2.3", actors=frozenset(["li"]), **PROXY)
    found = page.post(FORM + b"&by=somebody-else", sec_fetch_site="same-origin", x_forwarded_user="li")
    assert found.status == 303
    text = page.get("/finding/3", x_forwarded_user="li").text
    assert "by li" in text and "somebody-else" not in text and 'name="by"' not in text


@pytest.mark.parametrize("client", ["192.168.0.1", "127.0.0.1", "11.0.0.1", "::1", "not-an-address"])
def test_the_header_counts_from_the_proxy_alone(db, client, unchanged):
    page = Browser(db, client=client, actors=frozenset("*"), **PROXY)
    assert page.get("/", x_forwarded_user="li").status == 401
    assert page.post(FORM, sec_fetch_site="same-origin", x_forwarded_user="li").status == 401


@pytest.mark.parametrize("client", ["10.0.0.1", "::ffff:10.0.0.1"])
def test_a_proxy_that_names_no_user_lets_nobody_in(db, client):
    page = Browser(db, client=client, **PROXY)
    assert page.get("/", x_forwarded_user="li").status == 200
    assert page.get("/").status == page.get("/", x_forwarded_user="x" * 200).status == 401


def test_two_headers_of_a_user_are_refused(db):
    page = Browser(db, client="10.0.0.1", **PROXY)
    assert page.get("/", x_forwarded_user="li", **{"x_forwarded-user": "root"}).status == 401


@pytest.mark.parametrize(("policy", "forms"), [
    ({}, 0), ({"actors": frozenset(["li"])}, 1), ({"keepers": frozenset("*")}, 1), ({"actors": frozenset(["wang"])}, 0),
])  # fmt: skip
def test_a_reader_sees_no_forms(db, policy, forms):
    page = Browser(db, client="10.0.0.1", **PROXY, **policy)
    assert page.get("/finding/3", x_forwarded_user="li").text.count('method="post"') == forms


@pytest.mark.parametrize("address", ["/", "/findings.json", "/nowhere", "/run/999", "/page.js", "/login?token=x"])
@pytest.mark.parametrize("is_in", [True, False])
def test_every_response_has_the_headers(db, address, is_in):
    page = Browser(db).logged_in() if is_in else Browser(db)
    found = page.get(address).headers
    policy = found["content-security-policy"]
    for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'",
                 "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"):  # fmt: skip
        assert part in policy
    assert "unsafe" not in policy and found["x-content-type-options"] == "nosniff"
    assert found["referrer-policy"] == "no-referrer" and found["cross-origin-opener-policy"] == "same-origin"
    assert ("immutable" if "page.js" in address else "no-store") in found["cache-control"]


GETS = [
    "/page.css", "/page.js", "/login?token=wrong", "/act", "/logout",
    *(page.path.format("I-1" if name == "incident" else 3) for name, page in PAGES.items()),
    *(f"{'/board' if page.path == '/' else page.path.format('I-1' if name == 'incident' else 3)}{suffix(format)}"
      for name, page in PAGES.items() for format in page.formats),
]  # fmt: skip
"""Every route but those that only take a POST, which refuse this."""
ROLES = {
    "nobody": None, "a stranger": {"x_forwarded_user": "li"}, "reader": "li", "actor": "wang", "keeper": "zhao",
}  # fmt: skip


class Shown(Answer, frozen=True):
    """What every page shows here: whether it is shown is what counts."""

    def written(self, format):
        return format


@pytest.mark.parametrize("role", ROLES)
def test_every_route_has_its_roles(db, role, monkeypatch):
    """Nobody gets a page without a login, all roles read all, and each action has its own role."""
    shown = Shown((), document=Document(title="", headline="shown"))
    monkeypatch.setattr("tracker.page.app.answer", lambda *_: shown)
    known = {"actors": frozenset(["wang"]), "keepers": frozenset(["zhao"]), **PROXY}
    is_in = isinstance(ROLES[role], str)
    page = Browser(db, client="10.0.0.1" if is_in else "127.0.0.1", **known)
    headers = {"x_forwarded_user": ROLES[role]} if is_in else ROLES[role] or {}
    found = {address: page.get(address, **headers).status for address in GETS}
    public = {"/page.css": 200, "/page.js": 200, "/login?token=wrong": 401}
    others = dict.fromkeys(set(GETS) - public.keys(), 200 if is_in else 401)
    posts_only = dict.fromkeys(("/act", "/logout"), 405 if is_in else 401)
    assert found == public | others | posts_only
    may = {"actor": set(ACTIONS) - {"exclude", "restore", "pin", "unpin"}, "keeper": set(ACTIONS)}.get(role, set())
    for action in ("logout", *ACTIONS):
        target = "9" if action in ("exclude", "restore") else "I-1"
        form = urlencode({"action": action, "targets": target, "reason": "ticket 4711", "until": "2w"}).encode()
        address = "/logout" if action == "logout" else "/act"
        status = page.post(form, address, sec_fetch_site="same-origin", **headers).status
        able = {200, 303, 400} if action in may or (action == "logout" and is_in) else {403} if is_in else {401}
        assert status in able, (role, action)


BAD = {
    "too long": (b"reason=" + b"x" * 70_000, 413),
    "a long reason": (urlencode({"action": "ack", "targets": "I-1", "reason": "x" * 501}).encode(), 400),
    "no action": (b"targets=I-1&reason=ticket", 400),
    "an unknown action": (b"action=purge&targets=I-1&reason=ticket", 400),
    "a name of a method": (b"action=__class__&targets=I-1&reason=ticket", 400),
    "no target": (b"action=ack&reason=ticket", 400),
    "an unknown finding": (b"action=ack&targets=999&reason=ticket", 400),
    "one of two unknown": (b"action=ack&targets=I-1+999&reason=ticket", 400),
    "no reason": (b"action=expect&targets=I-1", 400),
    "a reason of dots": (b"action=expect&targets=I-1&reason=...", 400),
    "no end": (b"action=mute&targets=I-1&reason=ticket", 400),
    "a past end": (b"action=mute&targets=I-1&reason=ticket&until=2001-01-01", 400),
    "two reasons": (b"action=ack&targets=I-1&reason=a&reason=b", 400),
    "control characters": (b"action=ack&targets=I-1&reason=a%1b%5b31m", 400),
    "no text": (b"action=ack&targets=I-1&reason=\xff", 400),
    "many fields": (b"&".join(b"a%d=1" % at for at in range(200)), 400),
    "an unknown run": (b"action=exclude&targets=999&reason=ticket", 400),
    "a path": (b"action=exclude&targets=/etc/passwd&reason=ticket", 400),
    "no reason to exclude": (b"action=exclude&targets=9", 400),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_forms_change_nothing(page, case, unchanged):
    body, status = BAD[case]
    found = page.post(body, sec_fetch_site="same-origin")
    assert found.status == status and 10 < len(found.headline) < 500 and "Traceback" not in found.text


def test_another_type_of_body_is_refused(page, unchanged):
    sent = {"content_type": "application/json", "sec_fetch_site": "same-origin"}
    assert page.send("POST", "/act", b'{"action": "ack"}', **sent).status == 415
