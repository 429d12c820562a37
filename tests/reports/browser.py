"""A real Chromium for tests of pages: one per session; a page fails its test on a console message or a request."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager

import pytest

OVERLAPS = """() => {
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const holder = node.parentElement;
    if (!node.data.trim() || !holder.checkVisibility() || holder.closest("script, title")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const isCut = getComputedStyle(holder).overflow === "hidden";
    const box = holder.closest(".flame > svg")?.querySelector("rect") ?? (isCut ? holder : holder.closest("td"));
    const cell = box?.getBoundingClientRect();
    for (const { left, top, right: end, bottom } of range.getClientRects()) {
      // what has no room in a cell, in a box of a flame or in what cuts it, ends with it
      const right = cell ? Math.min(end, cell.right) : end;
      if (right - left > 1) boxes.push([left, top, right, bottom, node]);
    }
  }
  const found = [];
  boxes.forEach((one, at) => boxes.slice(at + 1).forEach((other) => {
    const width = Math.min(one[2], other[2]) - Math.max(one[0], other[0]);
    // the boxes of two lines of a paragraph touch: letters do not fill them
    const height = Math.min(one[3], other[3]) - Math.max(one[1], other[1]);
    if (width > 1 && height > 4 && one[4] !== other[4]) found.push([one[4].data.trim(), other[4].data.trim()]);
  }));
  return found;
}"""
"""Pairs of texts of which one is drawn over another one."""
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome", "/tmp/chromium")
MISSING = "no Chromium here: sh scripts/browser.sh installs one"


def found():
    """The path of a browser, None for none; TRACKER_BROWSER names one, `required` makes a missing one a failure."""
    named = os.environ.get("TRACKER_BROWSER", "")
    names = (named,) if named not in ("", "required") else NAMES
    return next(filter(None, map(shutil.which, names)), None)


class Browser:
    """Opens files in new windows."""

    def __init__(self, chromium):
        self._chromium = chromium

    @contextmanager
    def opened(self, path, *, width=1400, scheme="light", script=True):
        """The page of a file, with `width` x 900 pixels, light or dark, with or without scripts."""
        context = self._chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script
        )
        page, said = context.new_page(), []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: said.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        yield page
        context.close()
        assert said == []

    @contextmanager
    def visited(self, url, *, width=1280, height=720, scheme="light", script=True):
        """The page at an address of this machine, in a new window; no request may leave that server."""
        context = self._chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, java_script_enabled=script
        )
        page, said, base = context.new_page(), [], "/".join(url.split("/")[:3])
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith(base) else said.append(request.url))
        page.goto(url)
        yield page
        context.close()
        assert said == []


@pytest.fixture(scope="session")
def browser():
    """Chromium, headless; skips where there is none, unless TRACKER_BROWSER=required."""
    path = found()
    if path is None:
        if os.environ.get("TRACKER_BROWSER"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield Browser(chromium)
        chromium.close()
