"""A capture as the rules of the doctor see it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from tracker.profile import NO_OP, UNLINKED_OP, Capture, Rows
from tracker.profile.remedies import family_of


class View(Struct, frozen=True):
    """A capture as the rules see it; `counts` as in `CaptureFound`."""

    capture: Capture
    rows: Rows
    format: str
    counts: Mapping[str, int]
    has_markers: bool

    @property
    def family(self) -> str:
        """The profilers that the format comes from, "" where it is none of them."""
        return family_of(self.format)

    def setting(self, name: str) -> str:
        """A setting of the profiler in lower case, "" where the profile does not say."""
        return self.capture.settings.get(name, "").lower()

    def is_off(self, name: str) -> bool:
        """Whether the profile says that a setting was off."""
        return self.setting(name) in ("off", "0", "false")

    def is_on(self, name: str) -> bool:
        """Whether the profile says that a setting was on."""
        return self.setting(name) in ("on", "1", "true")

    @property
    def has_ops(self) -> bool:
        """Whether the database will have operators of this capture: what stands for work without one is none."""
        tables = self.rows.tables
        names = tables.get("op_key", {}).get("name", ())
        return any(names[int(key)] not in (UNLINKED_OP, NO_OP) for key in tables.get("op", {}).get("op_key", ()))

    def has_rows(self, table: str) -> bool:
        """Whether the table of the database will have rows of this capture."""
        return any(len(column) for column in self.rows.tables.get(table, {}).values())

    def says(self, column: str) -> bool:
        """Whether any op has a text in `column` of op or op_key."""
        tables = self.rows.tables
        texts = tables.get("op", {}).get(column, tables.get("op_key", {}).get(column, ()))
        return any(bool(text) for text in texts)

    @property
    def on_device(self) -> bool:
        """Whether anything ran on a device."""
        return self.has_rows("kernel")
