"""A watched folder, a clock that stands until it is moved, and somebody who writes down what is told."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.factories import EPOCH_NS
from tests.test_intake import write_trace
from tracker.config import Alerts, Channel, Folder, Rule, Settings, Watch
from tracker.results import Message
from tracker.store import Store, inbox, queries, watchers
from tracker.watch import Event, Work, rounds

SECOND = 10**9
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
SETTLED = 2 * MINUTE
"""The default of watch.settled."""


@dataclass
class Told:
    """Stands in for the network: whoever is told, and of what."""

    messages: list[Message] = field(default_factory=list)

    def __call__(self, channel: Channel, message: Message) -> str | None:
        self.messages.append(message)
        return None

    def titles(self) -> list[str]:
        return [message.title for message in self.messages]


ALERTS = Alerts(channels=(Channel(name="ops", url_env="OPS"),), rules=(Rule(channels=("ops",)),))
AT_ONCE = Alerts(channels=ALERTS.channels, rules=(Rule(channels=("ops",), when="at once"),))


class World:
    """`root` is watched with `layout`. Times of files lie in the future of its clock, so they count for nothing."""

    def __init__(
        self,
        store: Store,
        root: Path,
        *,
        host: str = "node1",
        owner: str = "node1:1:a",
        alerts: Alerts = ALERTS,
        **folder,
    ) -> None:
        self.root = root
        self.root.mkdir(exist_ok=True)
        self.store = store
        self.now_ns = EPOCH_NS
        self.said: list[Event] = []
        self.told = Told()
        self.folder = Folder(path=str(root), **{"layout": "{workload}/{version}/*", **folder})
        self.work = Work(
            store=store,
            settings=Settings(database="", origin="test", watch=Watch(folders=(self.folder,)), alerts=alerts),
            owner=owner,
            host=host,
            say=self.said.append,
            now=lambda: self.now_ns,
            send=self.told,
        )

    def profile(self, name: str, **trace) -> Path:
        """A small trace; each name has a content of its own."""
        trace = {"kernel_us": 100 + sum(name.encode()) % 800, **trace}
        return write_trace(self.root / name, **trace)

    def broken(self, name: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel", "na')
        return path

    def after(self, ns: int) -> World:
        self.now_ns += ns
        return self

    def look(self) -> dict[str, str]:
        """States after another look."""
        rounds.scan(self.work, always=True)
        return self.states()

    def round(self) -> dict[str, str]:
        """States after a whole round."""
        rounds.once(self.work)
        return self.states()

    def settle(self) -> dict[str, str]:
        """States after a first look, and a round when everything stood still for long enough."""
        rounds.scan(self.work, always=True)
        return self.after(SETTLED).round()

    def entries(self) -> dict[str, inbox.Entry]:
        return {
            str(Path(entry.path).relative_to(self.root)): entry
            for entry in inbox.entries(self.store)
            if entry.gone_ns is None
        }

    def states(self) -> dict[str, str]:
        return {path: entry.state for path, entry in self.entries().items()}

    def runs(self) -> list[tuple[str, str]]:
        """Workload and version of each run, the oldest first."""
        found = queries.runs(self.store).frame
        return list(zip(found["workload"], found["version"], strict=True))[::-1]

    def lines(self, *what: str) -> list[str]:
        """What was said, of these kinds, without the path of the folder."""
        return [event.text.replace(f"{self.root}/", "") for event in self.said if not what or event.what in what]

    def expected(self) -> list[watchers.Expectation]:
        return watchers.expectations(self.store, now_ns=self.now_ns)


def settings_file(folder: Path, database: str, root: Path, *, more: str = "", **watch: str) -> Mapping[str, str]:
    """The environment of a tracker whose settings file watches `root`."""
    entries = "\n".join(f"{key} = {json.dumps(value)}" for key, value in {"every": "1s", **watch}.items())
    path = folder / "tracker.toml"
    path.write_text(
        f"database = {json.dumps(database)}\n[watch]\n{entries}\n"
        f'[[watch.folders]]\npath = {json.dumps(str(root))}\nlayout = "{{workload}}/{{version}}/*"\n{more}'
    )
    import os

    package = str(Path(__file__).parents[2])
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRACKER_")}
    return {**kept, "TRACKER_CONFIG": str(path), "PYTHONPATH": package, "HOME": str(folder)}


TRACKER = (sys.executable, "-m", "tracker")
