"""What the options of pages are called there: a command spells them for a terminal, a page in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tracker.reports.cells import KINDS


class Wording(Struct, frozen=True):
    """How a page names an option.

    - label: the option; note: how its values are written, where that is not plain
    - values: value -> the words for it, of a switch `no` and `yes`; the others are called as they are written
    """

    label: str
    note: str = ""
    values: Mapping[str, str] = {}

    @property
    def whole(self) -> str:
        """The label with its note."""
        return f"{self.label} ({self.note})" if self.note else self.label


_ROWS_OF_TREES: Final = {
    "op": "operator", "op_name": "operator, all shapes", "rank": "rank", "step": "step", "stage": "stage",
}  # fmt: skip
_KINDS: Final = {kind: words.replace("op, all shapes", "operator, all shapes") for kind, words in KINDS.items()} | {
    "op": "operator with its shapes", "memory": "memory of an operator",
}  # fmt: skip
WORDING: Final[Mapping[str, Wording]] = {
    "states": Wording("state", values={"default": "open"}),
    "direction": Wording("became"),
    "kind": Wording("kind of series", values=_KINDS),
    "only_new": Wording("of the newest version", values={"no": "all", "yes": "only what it decided"}),
    "every": Wording("findings that others cover", values={"no": "left out", "yes": "listed"}),
    "by": Wording("rows by", values=_ROWS_OF_TREES),
    "match": Wording("operators matched by", values={"name": "its name", "shapes": "its name and shapes"}),
    "force": Wording("sides that are not comparable", values={"no": "refused", "yes": "shown all the same"}),
    "against": Wording("compared with"),
    "everything": Wording("advice", values={"no": "the largest", "yes": "all of it"}),
    "op": Wording("operator", "a name; * for any characters"),
    "module": Wording("module", "a name; * for any characters"),
    "key": Wording("series", "step, an operator, a number"),
    "shape": Wording("shapes", "a part of them"),
    "top": Wording("rows"),
    "last": Wording("newest versions"),
    "limit": Wording("runs at most"),
    "search": Wording("words", "of version, workload, device, commit, tags, files"),
    "tag": Wording("tag", "key or key=value"),
    "microbatches": Wording("microbatches of a step"),
    "baseline": Wording("baseline"),
}
"""Field of the options of a page -> what it is called there; the others are called as the command spells them."""


def wording_of(field: str, spelled: str) -> Wording:
    """Return how a page names a field of its options. `spelled`: as the command line has it."""
    return WORDING.get(field, Wording(spelled.removeprefix("--").lower().replace("-", " ")))
