"""Write the pictures of README.md and docs/ into docs/images: first screens of reports and pages, and two drawings.

    .venv/bin/python scripts/write_pictures.py

The screens need a Chromium (scripts/browser.sh) and Playwright; the drawings need neither, and a test compares them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
SCREENS = {
    "diff.png": (("diff", "tracker/samples/v01", "tracker/samples/v08"), 900, 640),
    "cluster.png": (("cluster", "tests/data/cluster"), 1200, 560),
}
"""Picture -> the command whose page it shows, its width, and its height at most, in pixels."""
PAGES = {"board.png": ("/", 1200, 400), "incident.png": ("/incident/I-1", 1200, 760)}
"""Picture -> the address of a page of `tracker page` on the data of `tracker demo`, and the same."""
_END_OF_LAST_LINE = """(height) => Math.max(...[...document.querySelectorAll("tr, li, p, h2, svg")]
    .map((each) => each.getBoundingClientRect().bottom).filter((bottom) => bottom < height - 12))"""


def write_screens() -> None:
    """Photograph the first screens of pages, light."""
    from playwright.sync_api import sync_playwright

    path = subprocess.run(["sh", "scripts/browser.sh"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path.strip(), args=["--no-sandbox"])
        for name, (words, width, height) in SCREENS.items():
            file = Path(folder) / f"{name}.html"
            command = [sys.executable, "-m", "tracker", *words, "--db", f"{folder}/tracker.db", "-o", str(file)]
            subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
            _photograph(browser, file.as_uri(), name, width, height)
        command = [sys.executable, "-m", "tracker", "demo", "--keep", f"{folder}/demo.db"]
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        command = [sys.executable, "-m", "tracker", "page", "--listen", "127.0.0.1:0", "--no-token"]
        with subprocess.Popen([*command, "--db", f"{folder}/demo.db"], cwd=ROOT, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            address = server.stdout.readline().decode().strip()
            for name, (place, width, height) in PAGES.items():
                _photograph(browser, f"{address}{place}", name, width, height)
            server.terminate()
        browser.close()


def _photograph(browser: Any, address: str, name: str, width: int, height: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
    page.goto(address)
    end = page.evaluate(_END_OF_LAST_LINE, height) + 12
    page.screenshot(path=IMAGES / name, clip={"x": 0, "y": 0, "width": width, "height": end})


_LOOK = """<style>
text { font: 13px system-ui, sans-serif; fill: #59616d } .b { font-weight: 600; fill: #1b1e24 }
.paper { fill: #fff; stroke: #e3e6ea } .band { fill: #e6f1fc } .axis { stroke: #c3c9d1; fill: none }
.old { fill: #b4bbc5 } .run { fill: #4a6fa5 } .worse { fill: #b3261e } text.worse { font-weight: 600 }
@media (prefers-color-scheme: dark) {
text { fill: #a2abb7 } .b { fill: #e7e9ec } .paper { fill: #16181d; stroke: #2d323a } .band { fill: #1b2d42 }
.axis { stroke: #4b525d } .old { fill: #59616d } .run { fill: #7fbcff } .worse { fill: #ff9187 } }
</style>"""
LEVEL = ((101, 99, 103), (100, 102, 98), (103, 100, 101), (99, 102, 100), (111, 109, 112))
"""Times in ms: of each version its runs."""
SHIFT, OWN = 0.04, 0.08
"""Machine-wide drift of the new runs, and what one operator takes longer beside it."""
OPERATORS = ((0.2, -0.5, 0.3, 0.1, -0.3, 0.2), (-0.4, 0.3, 0.1, -0.2, 0.4, 0.0), (0.3, 0.2, -0.5, 0.3, 0.0, -0.3))
"""Noise in %, a row per operator and a column per run; the second half of the runs is new, the last row slower."""


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{kind}">{words}</text>'


def _dot(x: float, y: float, kind: str) -> str:
    return f'<circle cx="{x:g}" cy="{y:.1f}" r="4" class="{kind}"/>'


def _drawing(title: str, height: int, parts: Sequence[str]) -> str:
    size = f'width="720" height="{height}" viewBox="0 0 720 {height}"'
    paper = f'<rect class="paper" x=".5" y=".5" width="719" height="{height - 1}" rx="6"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">'
    return "\n".join([head, _LOOK, paper, *parts, "</svg>", ""])


def level_drawing() -> str:
    """The runs of five versions: the window of the level, its range, and a version beyond it."""
    runs = [(at, time) for at, times in enumerate(LEVEL) for time in times]
    places = [50 + 38 * number + 20 * at for number, (at, _) in enumerate(runs)]
    base = [number for number, (at, _) in enumerate(runs) if at < len(LEVEL) - 1][-8:]

    def y(time: float) -> float:
        return 190 - 9 * (time - 97)

    times = [runs[number][1] for number in base]
    left, top, low = places[base[0]] - 14, y(max(times)) - 6, y(min(times)) + 6
    parts = [f'<rect class="band" x="{left}" y="{top:g}" width="{places[-1] + 14 - left}" height="{low - top:g}"/>']
    for number, (at, time) in enumerate(runs):
        kind = "worse" if at == len(LEVEL) - 1 else "run" if number in base else "old"
        parts.append(_dot(places[number], y(time), kind))
    for at in range(len(LEVEL)):
        parts.append(_text(places[3 * at + 1], 224, f"v{at + 1}", "b", "middle"))
    middle = (places[base[0]] + places[base[-1]]) / 2
    end = f"M{left} 112v-8H{places[base[-1]] + 14}v8"
    parts += [f'<path class="axis" d="{end}"/>', _text(middle, 96, "the level: its newest 8 runs", "b", "middle")]
    parts.append(_text(places[0] - 6, 96, "not in the window"))
    parts.append(_text(places[-1] + 10, top + 15, "their range", "", "end"))
    parts.append(_text(places[-2], 40, "REGRESSED, +10 %", "worse", "middle"))
    return _drawing("A level with its window, and a version whose runs are all beyond it", 240, parts)


def drift_drawing() -> str:
    """Three operators before and after, as measured and without what they share."""
    parts = []
    for left, words, removed in ((30, "as measured", 0.0), (380, "machine-wide drift of +4 % removed", SHIFT)):
        parts.append(_text(left, 30, words, "b"))
        for row, noise in enumerate(OPERATORS):
            zero, is_slower = 84 + 58 * row + 22 * (row == len(OPERATORS) - 1), row == len(OPERATORS) - 1
            parts.append(f'<path class="axis" d="M{left + 86} {zero}h180"/>')
            parts.append(_text(left, zero + 4, f"operator {'ABC'[row]}"))
            change = SHIFT - removed + OWN * is_slower
            for run, own in enumerate(noise):
                is_new = run >= len(noise) // 2
                kind = "old" if not is_new else "worse" if is_slower else "run"
                parts.append(_dot(left + 100 + 30 * run, zero - 3.5 * (own + 100 * change * is_new), kind))
            percent = f"{change:+.0%}".replace("%", " %") if change else "0 %"
            parts.append(_text(left + 274, zero + 4, percent, "worse" * is_slower))
    parts += [_text(left + 100, 246, "before") + _text(left + 190, 246, "after") for left in (30, 380)]
    return _drawing("Operators that all take 4 % longer, one of them more: what they share is removed", 264, parts)


DRAWINGS = {"level.svg": level_drawing, "drift.svg": drift_drawing}


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    for drawing, make in DRAWINGS.items():
        (IMAGES / drawing).write_text(make(), encoding="utf-8")
    write_screens()
