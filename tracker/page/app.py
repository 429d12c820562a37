"""The routes of `tracker page`: a page or a file per question, and one address for actions.

Each reading opens the database for its own time, so that one that went away and came back is no reason to start again;
so does each action, for writing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from hashlib import sha256
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, unquote
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from tracker import reports
from tracker.api import edits
from tracker.compare.commits import HASH
from tracker.errors import StoreError, TooLittleDataError, TrackerError, UsageError, check_reason
from tracker.page import filters, links
from tracker.page.access import HANDS_OVER, LOGIN, LOGOUT, ONLY_GET_AND_POST, Access, App, Guard, Refusal, Role, Visitor
from tracker.page.answers import (
    Answer,
    Inquiry,
    answer,
    choose_workload,
    commits_address,
    describe_newest_mark,
    known_run,
    sort_oldest_first,
)
from tracker.page.cache import Cache
from tracker.page.links import PAGES, NotFoundError, Screen
from tracker.page.search import list_hits
from tracker.reports import addresses, html
from tracker.reports.document import COMMITS, HERE, Document, Look, Target
from tracker.reports.html import Around, Choice, Form, StepTrace
from tracker.store import Store, queries
from tracker.units import format_moment, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracker.config import Settings

_MOST_BYTES: Final = 64 * 1024
"""Of a body."""
_AT_ONCE: Final = 4
_PATIENCE_S: Final = 30
LONGEST_S: Final = 30
"""Questions that are answered at once; how long others wait, and how long one may take."""
_LIGHT: Final = ("board", "findings", "runs", "search", "status")
"""Pages that a user may have several of at once; others take longer, and come one after the other."""
_CHOOSE_WORKLOAD: Final = "choose one with --workload"
"""The remedy where several workloads could be meant."""
_LIVE: Final = ("board", "status")
"""Pages that are loaded again while they are open."""
_MUTE: Final = "2w"
"""How long a mute lasts, unless the form says otherwise."""
_HITS: Final = 10
"""Hits that are listed while a reader writes."""
_WANTED: Final = "-wanted"
"""Behind the name of the cookie of a login: that of the page that was asked for without one."""
_WANTED_S: Final = 3_600
"""How long such a page is wanted."""
_ISSUE: Final = 2_000
"""Characters of a page in the address of a new issue: trackers refuse addresses of more than 8 kB."""
_TYPES: Final = {
    "json": "application/json", "csv": "text/csv; charset=utf-8", "html": "text/html; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "speedscope": "application/json",
}  # fmt: skip
_NEEDED: Final = (
    "tracker.compare", "tracker.ranks", "tracker.regressions.board", "tracker.regressions.explain",
    "tracker.regressions.history", "tracker.regressions.inbox", "tracker.reports.views.board",
    "tracker.reports.views.diff", "tracker.reports.views.history", "tracker.reports.views.incident",
)  # fmt: skip
ACTIONS: Final = {
    "ack": Role.ACTOR, "expect": Role.ACTOR, "mute": Role.ACTOR, "unmute": Role.ACTOR, "invalid": Role.ACTOR,
    "note": Role.ACTOR, "undo": Role.ACTOR, "exclude": Role.KEEPER, "restore": Role.KEEPER,
    "pin": Role.KEEPER, "unpin": Role.KEEPER,
}  # fmt: skip
"""Action -> who may do it."""
_WORDS: Final = {
    "ack": "Acknowledge", "expect": "Expect", "mute": "Mute", "unmute": "End mute", "invalid": "Invalid",
    "note": "Add note", "undo": "Undo", "exclude": "Exclude", "restore": "Restore",
    "pin": "Pin", "unpin": "Unpin",
}  # fmt: skip

_WHAT_MARKS_DO: Final = (
    "Acknowledge: seen, no more reminders. Expect: accept the change as intended. Mute: not until then. "
    "Invalid: a false positive. Undo: take the last mark back."
)


class Site(Struct, frozen=True):
    """What the pages are made of. `opened`: opens the database, for reading or for writing; `named`: a text with the
    database in the commands that it proposes.
    """

    settings: Settings
    access: Access
    opened: Callable[[bool], Store]
    named: Callable[[str, Callable[[str], str]], str] = lambda text, written: text


class BusyError(StoreError):
    """Too many questions at once, or one that takes too long."""


def warm_up() -> None:
    """Import and compile what pages need, so that the first reader does not wait for it."""
    for name in _NEEDED:
        import_module(name)
    html.serve([lambda _: _problem(200, "")], Look(), Around(pages=(), css="", script="", link=links.address_of))


def make(site: Site) -> App:
    """The application: all pages behind the access of `site`."""
    pages = _Pages(site)
    routes = [
        Route(links.CUT.path.replace("{}", "{about}"), pages.cut), Route(links.CHECKED, pages.compare),
        Route(LOGIN, pages.login), Route(LOGOUT, pages.logout, methods=["POST"]),
        Route("/act", pages.act, methods=["POST"]), Route(links.HITS, pages.suggest),
        Route("/page.css", lambda _: _asset(_css(), "text/css")),
        Route("/page.js", lambda _: _asset(_script(), "text/javascript")),
    ]  # fmt: skip
    for word, page in PAGES.items():
        path = page.path.replace("{}", "{about}")
        routes.append(Route(path, pages.shows(word, "")))
        path = "/board" if path == "/" else path
        routes += [Route(f"{path}{links.suffix(format)}", pages.shows(word, format)) for format in page.formats]
    # the longest first: a name in an address may hold a dot
    routes.sort(key=lambda route: (route.path.count("{"), -len(route.path)))
    handlers: dict[Any, Any] = {
        TrackerError: pages.problem, SQLAlchemyError: pages.problem, HTTPException: pages.problem,
        Exception: pages.problem,
    }  # fmt: skip
    app = Starlette(routes=routes, exception_handlers=handlers)
    return Guard(app, site.access, pages.refuse)


def _css() -> str:
    return "\n".join(map(html.text_of, ("page.css", "tabs.css", "charts.css", "server.css")))


def _script() -> str:
    return "\n".join(map(html.text_of, ("page.js", "tabs.js", "charts.js")))


def _asset(text: str, kind: str) -> Response:
    return Response(text, media_type=kind, headers={"cache-control": "public, max-age=31536000, immutable"})


def _versioned(path: str, text: str) -> str:
    return f"{path}?{sha256(text.encode()).hexdigest()[:12]}"


class _Pages:
    """The endpoints."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._cache = Cache()
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._of_users: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def _worked(self, work: Callable[[], Response], user: str | None, seconds: float | None) -> Response:
        """What `work` makes of a thread, which waits for its turn: behind the others of `user`, and of all. BusyError
        where it does not come, or `work` takes longer than `seconds`; then it keeps its turn until it ends.
        """
        own = () if user is None else (self._of_users.setdefault(user, asyncio.Semaphore()),)
        held: list[asyncio.Semaphore] = []
        try:
            async with asyncio.timeout(_PATIENCE_S):
                for turn in (*own, self._turns):
                    await turn.acquire()
                    held.append(turn)
        except BaseException as error:
            for turn in held:
                turn.release()
            if isinstance(error, TimeoutError):
                raise BusyError("The server is busy", remedy="load the page again in a moment") from None
            raise
        running, began = asyncio.get_running_loop().run_in_executor(None, work), time.monotonic()

        def ended(done: asyncio.Future[Response]) -> None:
            done.exception()  # else what comes too late is logged as never read
            for turn in held:
                turn.release()

        running.add_done_callback(ended)
        await asyncio.wait({running}, timeout=seconds)
        if seconds is None or (running.done() and (running.exception() is None or time.monotonic() - began < seconds)):
            return running.result()
        raise BusyError(
            f"This takes longer than {seconds:.0f} s, so it was broken off",
            remedy="narrow it by a filter or fewer sides, or run the command, which has no limit",
        )

    # ---- reading ----

    def shows(self, word: str, format: str) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The endpoint of a page, or of a file with the same."""
        page = PAGES[word]

        async def endpoint(request: Request) -> Response:
            sides, options = links.read(page, parse_qsl(request.url.query, keep_blank_values=True))
            if format == "speedscope" and not options.tree:
                options = replace(options, by=(*options.by, "op"))
            elif format and hasattr(options, "with_advice"):
                # as `tracker show` has it in a file, with the efficiency of each operator
                options = replace(options, with_advice=True)
            elif format == "html" and hasattr(options, "with_flame"):
                options = replace(options, with_flame=True)
            asked = Inquiry(word, request.path_params.get("about", ""), tuple(sides), options)
            reader: Visitor = request.state.reader
            user = None if word in _LIGHT else reader.name or reader.session or None
            # what a page says depends on these; on the database as well
            key = (request.url.path, request.url.query, reader.name, reader.role, bool(reader.session))
            return await self._worked(partial(made, asked, reader, key), user, LONGEST_S)

        def made(asked: Inquiry, reader: Visitor, key: tuple[object, ...]) -> Response:
            with self._site.opened(False) as store:
                store.stop_after(LONGEST_S)
                stamp = store.stamp() if word != "status" else None  # which looks at folders, too
                if stamp and (kept := self._cache.get((stamp, key))):
                    return kept
                status = 200
                try:
                    found = answer(store, asked, self._site.settings)
                    if found.leads_to:
                        return RedirectResponse(found.leads_to, status_code=303)
                except UsageError as error:
                    if format or asked.about:
                        raise
                    choices = filters.workloads_that_fit(store, asked) if _is_ambiguous(error, page) else []
                    if len(choices) > 1:
                        found = Answer((), document=choose_workload(asked, page.title, choices))
                    else:
                        # with what there is to choose from
                        status = _status_of(error)
                        found = Answer((), document=_problem(status, str(error)))
                response = (
                    self._file(asked, found, format) if format
                    else HTMLResponse(
                        self._page(asked, found, store, reader), status, HANDS_OVER if found.has_trace else None
                    )
                )  # fmt: skip
            if stamp:
                self._cache.keep((stamp, key), response)
            return response

        return endpoint

    async def suggest(self, request: Request) -> Response:
        """Return what a reader may mean who has written this much, as JSON: name, what it is, where, and whether that
        is all of its name.
        """
        _, options = links.read(PAGES["search"], parse_qsl(request.url.query, keep_blank_values=True))

        def find() -> Response:
            with self._site.opened(False) as store:
                store.stop_after(LONGEST_S)
                hits = list_hits(store, options.q or "", _HITS)
            listed = [(hit.name, hit.what, links.address_of(hit.target), hit.is_exact) for hit in hits]
            return Response(msgspec.json.encode(listed), media_type=_TYPES["json"])

        return await self._worked(find, None, LONGEST_S)

    async def compare(self, request: Request) -> Response:
        """Lead to the diff of the checked runs, the older side first: a list has the newest run first."""
        sides, options = links.read(PAGES["diff"], parse_qsl(request.url.query, keep_blank_values=True))
        reader: Visitor = request.state.reader

        def lead_on() -> Response:
            with self._site.opened(False) as store:
                ordered = sort_oldest_first(store, sides)
            address = links.address(PAGES["diff"], "", ordered, links.texts_of(options))
            return RedirectResponse(address, status_code=303)

        return await self._worked(lead_on, reader.name or reader.session, LONGEST_S)

    async def cut(self, request: Request) -> Response:
        """A step of a run as a trace, cut from the file that the database names. Without a limit of time: a file may be
        of gigabytes.
        """
        _, options = links.read(links.CUT, parse_qsl(request.url.query, keep_blank_values=True))
        reader: Visitor = request.state.reader
        work = partial(self._cut, request.path_params["about"], options)
        return await self._worked(work, reader.name or reader.session, None)

    def _cut(self, about: str, options: links.CutOptions) -> Response:
        """It is made whole before it is sent, so that a file that has changed is an error."""
        from tracker import intake
        from tracker.readers import ReadOptions

        read = ReadOptions(max_bytes=self._site.settings.max_bytes)
        with self._site.opened(False) as store:
            made = intake.cut(store, known_run(store, about), step=options.step, rank=options.rank, options=read)
            content = b"".join(made.content(compressed=True))
        headers = {"content-disposition": f'attachment; filename="{made.name}.json.gz"'}
        return Response(content, media_type="application/gzip", headers=headers)

    def _file(self, asked: Inquiry, found: Answer, format: str) -> Response:
        content = found.written(format)
        if isinstance(content, str) and format == "html":
            # a file has its own policy, which names its one script and style: saved, not shown from here
            content = self._site.named(content, escape)
        name = "-".join(part for part in (asked.page, *map(_safe, (asked.about, *asked.sides))) if part)
        headers = {"content-disposition": f'attachment; filename="{name[:80]}{links.suffix(format)}"'}
        return Response(content, media_type=_TYPES[format], headers=headers)

    def _page(self, asked: Inquiry, found: Answer, store: Store, reader: Visitor) -> str:
        page, texts = PAGES[asked.page], links.texts_of(asked.options)
        values = filters.values_of_choices(store, asked, self._site.settings.alerts.owners)
        able = page.formats if found.results or found.rows is not None else ()
        endings = [
            links.suffix(format)
            for format in able
            if format != "speedscope" or all(reports.can_show(format, one.word) for one in found.results)
        ]
        formats = [Choice(end, links.address(page, asked.about, asked.sides, texts, end)) for end in endings]
        command = links.command(page, found.names, texts) if formats else ""
        read_only = self._site.access.policy.read_only
        commits = commits_address(store, found, self._site.settings.page.commit_url)
        sought = getattr(asked.options, "q", None) or ""
        markdown = found.written("markdown") if asked.page in ("incident", "finding") else ""
        issue = ""
        if markdown:
            headline = found.makes()[0](Look()).headline
            title = f"{found.versions.workload} {headline}" if found.versions else headline
            issue = _issue_address(self._site.settings.page.issue_url, title, str(markdown))
        around = self._around(
            asked.page, reader, sought, formats=tuple(formats),
            link=_Live(store, asked, self._site.settings.page.commit_url).address_of,
            command=printable(command),
            filters=tuple(filters.list_filters(store, asked, values)), narrowed_to=filters.narrowing(asked),
            trace=self._trace(asked, found) if found.trace is not None else None,
            beside=(*(Choice(words, links.address_of(target)) for words, target in found.beside),
                    *([Choice("commits", commits)] if commits else []),
                    *([Choice("open an issue", issue)] if issue else [])),
            swap=None if found.swap is None else Choice("swap sides", links.address_of(found.swap)),
            is_in_bar=bool(formats), is_dense=asked.page == "board", acting=_acting(asked, read_only, reader),
            newest_mark=describe_newest_mark(found), markdown=markdown,
            updated=f"{format_moment(time.time_ns())[11:]} UTC" if asked.page in _LIVE else "",
            forms=(*filters.list_questions(store, asked, values), *_actions(asked, found, read_only, reader)),
        )  # fmt: skip
        served = html.serve(found.makes(), Look(), around)
        if not markdown:
            return self._site.named(served, escape)
        # what is copied is read where this database has no such place
        copied = str(around.markdown_lines)
        return copied.join(self._site.named(part, escape) for part in served.split(copied))

    def _trace(self, asked: Inquiry, found: Answer) -> StepTrace:
        """The step that the page shows, else the slowest one."""
        chosen = asked.options.steps if len(asked.options.steps) == 1 else ()
        texts = [("--step", str(step)) for step in chosen] + [("--rank", str(one)) for one in asked.options.ranks[:1]]
        step = f"step {chosen[0]}" if chosen else "the slowest step"
        if not found.has_trace:
            return StepTrace(step, "", "", "", missing=str(found.trace))
        address = links.address(links.CUT, asked.about, (), texts)
        return StepTrace(step, address, f"run {asked.about}, {step}", self._site.settings.page.perfetto)

    def _around(self, word: str, reader: Visitor | None, sought: str = "", **more: Any) -> Around:
        choices = [Choice(page.title, page.path, name == word) for name, page in PAGES.items() if page.is_on_top]
        return Around(
            pages=tuple(choices) if reader else (), css=_versioned("/page.css", _css()),
            script=_versioned("/page.js", _script()),
            search=(PAGES["search"].path, "q", sought) if reader else None,
            who=reader.name if reader else "", logout=LOGOUT if reader and reader.session else "", **more,
        )  # fmt: skip

    # ---- acting ----

    def login(self, request: Request) -> Response:
        """A cookie for the token of the address, then the page that was asked for without one, else the board. The page
        leads on by itself: after a redirect from another site a browser would not send the cookie, which is for this
        site alone.
        """
        access = self._site.access
        wanted = unquote(request.cookies.get(f"{access.policy.cookie}{_WANTED}", ""))
        path, _, query = wanted.partition("?")
        # a cookie may be anybody's: it leads to a page of this server or nowhere
        address = links.find_page_of(unquote(path), query) or "/"
        session = access.login(request.query_params.get("token", ""))
        if session is None and access.is_logged_in(request):
            return RedirectResponse("/", status_code=303)
        if session is None:
            return self._problem_page(401, "This address was used, or is wrong: start tracker page again for a new one")
        written = escape(address)
        made = HTMLResponse(
            '<!doctype html><html lang="en"><meta charset="utf-8">'
            f'<meta http-equiv="refresh" content="0;url={written}">'
            f'<title>tracker</title><p><a href="{written}">Go on</a></p></html>'
        )
        if wanted:
            made.delete_cookie(f"{access.policy.cookie}{_WANTED}", path=LOGIN, httponly=True, samesite="lax")
        made.set_cookie(access.policy.cookie, session, httponly=True, samesite="strict", path="/")
        return made

    def logout(self, request: Request) -> Response:
        """End the session of the reader."""
        access = self._site.access
        access.logout(request.state.reader.session)
        made = self._problem_page(
            200, "You are logged out; log in with the token of --token-file, or start tracker page again"
        )
        made.delete_cookie(access.policy.cookie, path="/", httponly=True, samesite="strict")
        return made

    async def act(self, request: Request) -> Response:
        """One action, then back to the page that it is about."""
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                raise HTTPException(413, "A form of this page has 64 kB at most: nothing was changed")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise HTTPException(415, "This is no form of a page: nothing was changed")
        try:
            given = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=links.MOST_VALUES)
        except ValueError:
            raise HTTPException(400, "The form cannot be read: nothing was changed") from None
        # no limit: what is written is never broken off
        return await self._worked(partial(self._act, given, request.state.reader), None, None)

    def _act(self, given: Iterable[tuple[str, str]], reader: Visitor) -> Response:
        values: dict[str, str] = {}
        targets: list[str] = []
        for name, value in given:
            links.check_text(name, value.strip())
            if name == "targets":  # one of each row that was chosen
                targets += value.replace(",", " ").split()
                continue
            if name in values:
                raise UsageError(f"the form has two values of {name!r}", remedy="send it from a page")
            values[name] = value.strip()
        action = values.get("action", "")
        if action not in ACTIONS:
            raise UsageError(f"there is no action {action[:20]!r}", remedy=f"choose from {', '.join(ACTIONS)}")
        if reader.role < ACTIONS[action]:
            raise HTTPException(403, f"{reader.name or 'This login'} may not {action}: nothing was changed")
        if action in ("pin", "unpin"):
            return self._pin(action, values)
        whole = values.get("whole", "")
        targets = targets or whole.split()
        if not targets:
            raise UsageError("the form names nothing to change", remedy="check findings, or give I-3 or 12")
        reason, who = values.get("reason", ""), reader.name or values.get("by") or edits.account(None)
        with self._site.opened(True) as store:
            if ACTIONS[action] is Role.KEEPER:
                check_reason(reason)
                change = edits.exclude_runs if action == "exclude" else edits.restore_runs
                change(targets, reason=f"{reason} (by {who})", store=store)
            elif action == "mute":
                edits.mute(targets, until=values.get("until", ""), reason=reason, by=who, store=store)
            elif action == "ack" and not reason:
                # as on the command line, seeing it needs no reason
                edits.ack(targets, by=who, store=store)
            else:
                getattr(edits, action)(targets, reason=reason, by=who, store=store)
        back = values.get("back", "")
        if not _is_board(back):
            back = _back(action, [whole] if whole else targets)
        return RedirectResponse(back, status_code=303)

    def _pin(self, action: str, values: Mapping[str, str]) -> Response:
        """Pin or unpin a version of a workload, then back to the history."""
        version, workload, back = (values.get(name, "") for name in ("version", "workload", "back"))
        if not version or not workload:
            raise UsageError("the form names no version to pin", remedy="give a version and its workload")
        change = edits.pin_version if action == "pin" else edits.unpin_version
        with self._site.opened(True) as store:
            change(version, workload=workload, store=store)
        address = links.address(PAGES["history"], "", (), [("--workload", workload)])
        return RedirectResponse(back if back.startswith("/history?") else address, status_code=303)

    # ---- what goes wrong ----

    def problem(self, request: Request, error: Exception) -> Response:
        """The page of an error: its status and one sentence."""
        if isinstance(error, HTTPException):
            usual = {404: "There is no such page", 405: ONLY_GET_AND_POST}
            text = usual.get(error.status_code, error.detail)
            return self._problem_page(error.status_code, text, request)
        if isinstance(error, TrackerError):
            return self._problem_page(_status_of(error), str(error), request)
        if isinstance(error, SQLAlchemyError):
            return self._problem_page(503, "The database cannot be read now: load the page again in a moment", request)
        return self._problem_page(500, "tracker itself failed on this page; its log says why", request)

    def refuse(self, refusal: Refusal, request: Request) -> App:
        """Return the page that says why a request is refused. A reader who is to log in comes back to the page that was
        asked for, by a cookie that holds its address.
        """
        made = self._problem_page(refusal.status, refusal.sentence)
        address = links.find_page_of(request.url.path, request.url.query) if request.method == "GET" else ""
        if refusal.asks_to_log_in and address:
            # lax: the address of the login may be opened from a chat, too
            made.set_cookie(
                f"{self._site.access.policy.cookie}{_WANTED}", quote(address, safe=""), max_age=_WANTED_S, path=LOGIN,
                httponly=True, samesite="lax",
            )  # fmt: skip
        return made

    def _problem_page(self, status: int, text: str, request: Request | None = None) -> Response:
        reader = getattr(request.state, "reader", None) if request is not None else None
        around = self._around("", reader if isinstance(reader, Visitor) else None, link=links.address_of)
        return HTMLResponse(html.serve([lambda _: _problem(status, text)], Look(), around), status)


class _Live:
    """Where rows lead: a history only where there is one. An operator that takes too little has no series; another way
    to see this page, and commits where the settings have an address of them.
    """

    def __init__(self, store: Store, asked: Inquiry, commit_url: str | None) -> None:
        self._store = store
        self._asked = asked
        self._commit_url = commit_url
        self._names: dict[tuple[str, str | None], frozenset[tuple[str, ...]]] = {}
        self._addresses: dict[Target, str] = {}

    def address_of(self, link: Target) -> str:
        """The address of a row, "" for nowhere. A point of a chart and the row of its table have one."""
        if link not in self._addresses:
            self._addresses[link] = self._new_address(link)
        return self._addresses[link]

    def _new_address(self, link: Target) -> str:
        query = dict(link.query)
        if link.page == HERE:
            page = PAGES[self._asked.page]
            own = [pair for pair in links.texts_of(self._asked.options) if pair[0] not in query]
            changed = [(option, value) for option, value in link.query if value]
            return links.address(page, self._asked.about, self._asked.sides, [*own, *changed])
        if link.page == COMMITS:
            good, bad = query["good"], query["bad"]
            is_known = HASH.fullmatch(good) is not None and HASH.fullmatch(bad) is not None
            return addresses.commits_address(self._commit_url, good, bad) if is_known else ""
        name, workload = query.get("KEY", query.get("--module", "")), query.get("--workload")
        is_named = link.page == "history" and workload and name and not name.isdigit()
        if is_named and not self._has_history(str(workload), query.get("--kind"), name):
            return ""
        if any(len(value) > links.LONGEST_NAME for _, value in link.query):
            return ""  # which no page would take
        return links.address_of(link)

    def _has_history(self, workload: str, kind: str | None, name: str) -> bool:
        # those of whole runs are few, and all that a board needs; of operators a workload has thousands
        if kind in (None, "run") and ("run", name) in self._names_of(workload, "run"):
            return True
        return kind != "run" and ((kind, name) if kind else (name,)) in self._names_of(workload, None)

    def _names_of(self, workload: str, kind: str | None) -> frozenset[tuple[str, ...]]:
        """Return the series of a workload, of a kind or of all: by kind and name, and by name alone."""
        if (workload, kind) not in self._names:
            known = list(queries.series_names(self._store, workload, kind).rows("kind", "name"))
            self._names[workload, kind] = frozenset([*known, *((name,) for _, name in known)])
        return self._names[workload, kind]


def _problem(status: int, sentence: str) -> Document:
    return Document(title="" if status == 200 else str(status), headline=sentence)


def _is_ambiguous(error: UsageError, page: Screen) -> bool:
    """Return whether a page only lacks the name of a workload, which it can offer."""
    return "workload" in page.choices and error.remedy == _CHOOSE_WORKLOAD


def _status_of(error: TrackerError) -> int:
    if isinstance(error, NotFoundError):
        return 404
    if isinstance(error, TooLittleDataError):
        return 409
    return 400 if isinstance(error, UsageError) else 503


def _issue_address(template: str | None, title: str, markdown: str) -> str:
    """Return the address of a new issue with the headline and the first part of a page; "" where none was set."""
    if not template:
        return ""
    text = markdown if len(markdown) <= _ISSUE else f"{markdown[:_ISSUE].rpartition(chr(10))[0]}\n\n…"
    return template.replace("{title}", quote(title, safe="")).replace("{text}", quote(text, safe=""))


def _safe(text: str) -> str:
    """A text as part of a file name."""
    return "".join(char if char.isascii() and (char.isalnum() or char in "-._") else "_" for char in text)


def _is_board(address: str) -> bool:
    """Return whether an address that a form gives is that of the board: a form may lead nowhere else."""
    return address == "/" or address.startswith("/?")


def _back(action: str, targets: list[str]) -> str:
    """The page of what was changed; of several the list."""
    if ACTIONS[action] is Role.KEEPER:
        one = targets[0].removeprefix("run:")
        return f"/run/{int(one)}" if len(targets) == 1 else "/runs?state=all"
    if len(targets) > 1 or targets[0].startswith("silence:"):
        return "/findings"
    number = targets[0].removeprefix("I-").removeprefix("incident:")
    return f"/finding/{int(number)}" if targets[0].isdigit() else f"/incident/I-{int(number)}"


def _actions(asked: Inquiry, found: Answer, read_only: bool, reader: Visitor) -> Iterator[Form]:
    """What the reader may do here."""
    who = () if reader.name else (("by", "your name", edits.account(None), "text"),)
    if asked.page == "history" and not read_only and reader.role >= Role.KEEPER:
        yield from _pins(asked, found)
    if read_only or asked.page not in ("findings", "incident", "finding", "run", "runs"):
        return
    own = ("targets", "", found.acts_on, "hidden") if found.acts_on else ("targets", "", "", "needed")
    if asked.page in ("run", "runs"):
        if reader.role < Role.KEEPER:
            return
        target = (own[0], "runs, such as 41 42", *own[2:])
        reason = ("reason", "reason (required)", "", "needed")
        able = [name for name, over in (("exclude", "excluded"), ("restore", "active")) if found.state != over]
        yield Form("Exclude from comparisons, or restore", "/act", _buttons(*able), (target, reason, *who))
        return
    if reader.role < Role.ACTOR:
        return
    buttons = _buttons("ack", "expect", "mute", "invalid", "unmute", "note", "undo")
    reason = ("reason", "reason (needed but for Acknowledge)", "", "needed")
    until = ("until", "mute until (2w, 2026-12-31, future:v2.4)", _MUTE, "text")
    if asked.page == "finding":
        target, title = ("targets", "", found.acts_on, "hidden"), "Decide on this finding"
    elif found.acts_on:
        target = ("whole", "", found.acts_on, "hidden")
        title = f"Decide on the checked findings; on all of {found.acts_on} where none is checked"
    else:
        target, title = ("targets", "or by number, such as I-3 12", "", "text"), "Decide on the checked findings"
    fields = (target, reason, *who, until)
    yield Form(title, "/act", buttons, fields, name="act", note=_WHAT_MARKS_DO, needs_nothing=("ack",))


def _pins(asked: Inquiry, found: Answer) -> Iterator[Form]:
    """Yield what pins a version of a history: the newest one that is shown, unless the reader names another one."""
    for history in found.results:
        workloads = {*history.tables["series"].listed("workload")}
        if len(workloads) > 1:
            return
        (workload,), newest = workloads, history.tables["points"].listed("version")[-1]
        back = links.address(PAGES["history"], asked.about, asked.sides, links.texts_of(asked.options))
        fields = (
            ("workload", "", workload, "hidden"), ("back", "", back, "hidden"),
            ("version", "version", newest, "needed"),
        )  # fmt: skip
        title = f"Pin a version of {workload}: the fixed baseline of its comparisons"
        yield Form(title, "/act", _buttons("pin", "unpin"), fields)


def _acting(asked: Inquiry, read_only: bool, reader: Visitor) -> Form | None:
    """Return what acknowledges the incident of a row of the board in place; None for a reader who may not."""
    if asked.page != "board" or read_only or reader.role < Role.ACTOR:
        return None
    back = links.address(PAGES["board"], "", (), links.texts_of(asked.options))
    fields = [("back", "", back, "hidden")]
    if not reader.name:
        fields.append(("by", "", edits.account(None), "hidden"))
    return Form("Acknowledge", "/act", (("ack", "ack"),), tuple(fields))


def _buttons(*actions: str) -> tuple[tuple[str, str], ...]:
    return tuple((action, _WORDS[action]) for action in actions)
