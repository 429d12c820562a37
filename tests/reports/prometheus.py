"""A strict parser of the text format of Prometheus, after its description (exposition format 0.0.4)."""

from __future__ import annotations

import math
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def parse(text):
    """Metric -> {labels as a frozenset of pairs: value}; ValueError for anything that the format does not allow."""
    if text and not text.endswith("\n"):
        raise ValueError("the last line has no end")
    found, helped, typed, closed, current = {}, set(), {}, set(), None
    for line in text.split("\n")[:-1]:
        if line.startswith("# "):
            word, name, rest = line[2:].split(" ", 2)
            if word not in ("HELP", "TYPE") or not NAME.fullmatch(name):
                raise ValueError(f"no comment of the format: {line!r}")
            if name != current:
                closed.add(current)
                current = name
            if name in closed or name in found:
                raise ValueError(f"{name} is in two places, or declared behind its samples")
            if word == "TYPE" and (name in typed or rest not in ("counter", "gauge", "untyped")):
                raise ValueError(f"a bad type: {line!r}")
            if word == "HELP" and (name in helped or re.search(r"\\(?![\\n])", rest)):
                raise ValueError(f"a bad help: {line!r}")
            (typed.__setitem__(name, rest) if word == "TYPE" else helped.add(name))
            continue
        name, labels, value = _sample(line)
        if name != current or name not in typed or name not in helped:
            raise ValueError(f"{name} has no declaration right before it")
        if labels in found.setdefault(name, {}):
            raise ValueError(f"the same sample twice: {line!r}")
        found[name][labels] = value
    return found


def _sample(line):
    name = NAME.match(line)
    if not name:
        raise ValueError(f"no sample: {line!r}")
    at, pairs = name.end(), []
    if line[at : at + 1] == "{":
        at += 1
        while line[at] != "}":
            label = LABEL.match(line, at)
            if not label or line[label.end() : label.end() + 2] != '="':
                raise ValueError(f"no label at {at}: {line!r}")
            at, text = _quoted(line, label.end() + 2)
            pairs.append((label[0], text))
            if line[at] == ",":
                at += 1
            elif line[at] != "}":
                raise ValueError(f"no comma at {at}: {line!r}")
        at += 1
    if len({label for label, _ in pairs}) < len(pairs) or any(label.startswith("__") for label, _ in pairs):
        raise ValueError(f"bad labels: {line!r}")
    if line[at : at + 1] != " ":
        raise ValueError(f"no space before the value: {line!r}")
    number = float(line[at + 1 :])  # no timestamp: node_exporter refuses them
    if math.isnan(number):
        raise ValueError(f"what is not known is left out: {line!r}")
    return name[0], frozenset(pairs), number


def _quoted(line, at):
    text = ""
    while line[at] != '"':
        if line[at] == "\\":
            text += ESCAPES[line[at : at + 2]]
            at += 2
        else:
            text += line[at]
            at += 1
    return at + 1, text
