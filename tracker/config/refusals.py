"""What msgspec says of a wrong entry, in the words of people who write files by hand."""

from __future__ import annotations

import re
from typing import Final

_UNKNOWN: Final = "Object contains unknown field `"
_BETTER: Final = {
    "Object missing required field": "lacks",
    "Expected": "expected",
    "object": "a table",
    "array": "a list",
    "str": "a text",
    "int": "a whole number",
    "bool": "true or false",
}


def explained(message: str) -> tuple[str, str, str]:
    """Return of a ValidationError the key, ` of entry N` in a list, and what is wrong, '' for an unknown key.

    >>> explained("Expected `int`, got `str` - at `$.limits.max_bytes`")
    ('limits.max_bytes', '', 'expected a whole number, got a text')
    >>> explained("Object contains unknown field `rows` - at `$.limits`")
    ('limits.rows', '', '')

    An address, which is a secret, is not repeated.
    """
    what, _, where = message.partition(" - at `$")
    key = re.sub(r"\[[^]]*\]", "", where.rstrip("`").lstrip("."))
    entry = re.search(r"\[([0-9]+)\]", where)
    of = f" of entry {int(entry[1]) + 1}" if entry else ""
    if what.startswith(_UNKNOWN):
        return f"{key}.{what.removeprefix(_UNKNOWN).rstrip('`')}".lstrip("."), of, ""
    plain = re.sub("'[^']*://[^']*'", "an address", what.replace("`", "").replace(" | null", ""))
    plain = re.sub("^Invalid enum value (.*)", r"\1 is not a choice", plain)
    for word, better in _BETTER.items():
        plain = re.sub(rf"\b{word}\b", better, plain)
    return key, of, plain
