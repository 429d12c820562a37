"""The rules, family by family, in the order in which they claim pieces of work: a pattern before what fits anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tracker.advice.rule import AdviceRule
from tracker.advice.rules import communication, environment, fusion, host, input, kernels, memory, pipeline

FAMILIES: Final[Mapping[str, tuple[AdviceRule, ...]]] = {
    "input": input.RULES,
    "host": host.RULES,
    "kernels": (*fusion.RULES, *kernels.RULES),
    "communication": communication.RULES,
    "pipeline": pipeline.RULES,
    "memory": memory.RULES,
    "environment": environment.RULES,
}
"""Word of `--only` -> its rules."""
RULES: Final = tuple(rule for rules in FAMILIES.values() for rule in rules)
RULE_VERSION: Final = 7
"""Raised whenever a rule gives other numbers: stored advice is made again."""
