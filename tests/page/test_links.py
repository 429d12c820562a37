"""The query of an address and the options of a command are the same, both ways."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest

from tracker.page import links
from tracker.page.links import NOT_HERE, PAGES, BoardPageOptions, DiffPageOptions, MatrixOptions, RunsOptions
from tracker.results import (
    OPEN_STATES,
    STATES,
    AdviseOptions,
    ClusterOptions,
    FindingsOptions,
    HistoryOptions,
    LogOptions,
    ShowOptions,
)

OPTIONS = [
    ("board", BoardPageOptions(workload="gpt", device="H100", owner="Li Wei", last=7, page=3)),
    ("findings", FindingsOptions(workload="a&b=c#?%", states=STATES, only_new=True, every=True, version="v1")),
    ("findings", FindingsOptions(states=OPEN_STATES, direction="regression", kind="op")),
    ("findings", FindingsOptions(states=("taken back", "new"), device="\u4e2d\u6587 H100")),
    ("history", HistoryOptions(key="aten::*norm*", shape="[1, 2]", metric="exposed_ns", config={"batch": "32=1"})),
    ("history", HistoryOptions(key="step", last=30, from_version="v&1", to_version="v9", x_axis="date", y_axis="zero")),
    ("history", HistoryOptions(module="*/Attention", kind="module", top=3, against="pinned", device="x", workload="w")),
    ("diff", DiffPageOptions(op="a+b", module="m", kind="k", group="dp", ranks=(0, 3), stage=1, minimum_ns=2500,
                         baseline_steps=(1, 2, 3), candidate_steps=(4,), match="name", max_kernels=2,
                         single_kernels=True,
                         only=("overall", "operator"), by=("module",), depth=2, force=True, config={"a": "b"},
                         step_kind="DECODE", with_flame=True,
                         workload="w")),
    ("run", ShowOptions(steps=(12, 14), by=("rank", "module"), depth=3, op="x", group="dp", kind="k", minimum_ns=1,
     module="m", ranks=(7,), stage=0, step_kind="a+b c", workload="w")),
    ("cluster", ClusterOptions(workload="w", ranks=(1,), stage=0, steps=(3,), step_kind="x", microbatches=8,
                               only=("ranks",))),
    ("log", LogOptions(workload="w", baseline="v1", metric="step", config={"a": "b"}, by=("lr",), last=5, device="d")),
    ("run_advice", AdviseOptions(workload="w", everything=True, rules=("K6", "I3"), only=("kernels",), microbatches=8,
                                 step_kind="x")),
    ("runs", RunsOptions(search="a b=1", version="v1", workload="w", device="d", tag="x", state="all", limit=7)),
]  # fmt: skip


@pytest.mark.parametrize(("word", "options"), OPTIONS, ids=lambda one: one if isinstance(one, str) else "")
def test_options_come_back_from_their_address(word, options):
    page = PAGES[word]
    address = links.address(page, "9", (), links.texts_of(options))
    assert links.read(page, parse_qsl(urlsplit(address).query)) == ([], options)


def test_every_option_of_a_page_is_tried():
    tried: dict[type, set[str]] = {}
    for _, options in OPTIONS:
        own = links.spelled(type(options))
        names = {name for name, _ in links.texts_of(options)}
        tried.setdefault(type(options), set()).update(field for field, how in own.items() if how.name in names)
    assert {kind: set(links.spelled(kind)) - own for kind, own in tried.items()} == {kind: set() for kind in tried}


def test_defaults_have_no_query():
    assert links.address(PAGES["findings"], "", (), links.texts_of(FindingsOptions())) == "/findings"


def test_what_reads_files_is_no_option():
    for page in PAGES.values():
        assert not NOT_HERE & set(links.spelled(page.options))


def test_sides_stand_before_the_options():
    texts = links.texts_of(MatrixOptions(by=("communication",)))
    address = links.address(PAGES["diff"], "", ("v 1", "v2", "v3"), texts, ".json")
    assert address == "/diff.json?side=v+1&side=v2&side=v3&by=communication"
    assert links.command(PAGES["diff"], ("v 1", "v2", "v3"), texts) == "tracker diff 'v 1' v2 v3 --by communication"
    assert links.read(PAGES["diff"], parse_qsl(urlsplit(address).query))[1] == MatrixOptions(by=("communication",))
