"""What else changed between two sides: a slower operator on another driver is another story than on the same one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.columns import Columns
from tracker.compare.references import FILES
from tracker.profile import OF_A_RUN, OF_THE_CODE
from tracker.profile.branches import main_of
from tracker.results.diff_rows import EnvironmentRow
from tracker.schema.column_names import (
    COMMIT,
    DEVICE,
    FORMAT,
    HOST,
    KEY,
    KIND,
    QUALITY,
    RULES_VERSION,
    SETTINGS,
    TIMELINE,
    VALUE,
    VENDOR,
    WORKLOAD,
)
from tracker.store import queries
from tracker.units import format_numbers

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide

_KIND_ORDER = ("workload", "device", "configuration", "code", "fact", "host", "setting", "capture", "tag")


def compare(baseline: LoadedSide, candidate: LoadedSide) -> Columns:
    """Return the `environment` of a Diff: only what differs, None where a side does not say.

    Several values of a side join with ` | `.
    """
    before, after = _known(baseline), _known(candidate)
    if ("workload", "workload") not in before.keys() & after.keys():  # a path has none
        before.pop(("workload", "workload"), None)
        after.pop(("workload", "workload"), None)
    differing = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    differing.sort(key=lambda key: (_KIND_ORDER.index(key[0]), key[1]))
    rows = [EnvironmentRow(*key, before.get(key), after.get(key)) for key in differing]
    return Columns.of_structs(EnvironmentRow, rows)


def _known(side: LoadedSide) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], set[str]] = {}

    def add(kind: str, key: str, value: object) -> None:
        if value is not None and str(value) != "":
            found.setdefault((kind, key), set()).add(str(value))

    runs = side.runs.rows(WORKLOAD, VENDOR, DEVICE, FORMAT, COMMIT, RULES_VERSION)
    for workload, vendor, device, source, commit, rules in runs:
        add("workload", "workload", main_of(workload) if workload != FILES else None)
        add("device", "device", f"{vendor} {device}".strip())
        add("capture", "format", source)
        add("code", "commit", commit)
        add("capture", "naming rules", rules)
    for kind, key, value in side.query_with(queries.facts).rows(KIND, KEY, VALUE):
        if kind != "fact" or key not in OF_A_RUN:
            add("code" if kind == "fact" and key in OF_THE_CODE else kind, key, value)
    for host, timeline, quality, settings in side.captures.rows(HOST, TIMELINE, QUALITY, SETTINGS):
        add("host", "host", host)
        add("capture", "timeline", timeline)
        add("capture", "quality", quality)
        for key, value in queries.settings_of(settings).items():
            add("setting", key, value)
    add("capture", "ranks", side.side.ranks)
    add("capture", "steps", side.side.steps)
    if side.chosen_steps is not None:
        add("capture", "chosen steps", format_numbers(side.chosen_steps))
    return {key: " | ".join(sorted(texts)) for key, texts in found.items()}
