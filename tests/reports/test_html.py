"""Documents as one HTML file: what it holds, and what it keeps out."""

import base64
import gzip
import hashlib
import html
import json
import re

import pytest
from msgspec.structs import replace

from tests.reports import builders
from tests.reports.builders import MS
from tracker import compare, reports
from tracker.cli.start import samples
from tracker.reports.document import HERE, Bars, Column, Curves, Document, Flame, Look, Tab, Target, Trend, table
from tracker.reports.html import PLAIN_ROWS, Around, serve
from tracker.reports.svg import axis_of_spans, chart, span, spans, strip
from tracker.results import DiffOptions
from tracker.results.verdicts import VERDICTS

HOSTILE = "</script><img src=x onerror=alert(1)>\u2028\u202e\x1b[31m\"'&"


def page_of(result, **wishes):
    return reports.render(result, "html", **wishes)


def table_of(page, title):
    """Cells of the rows under a title that are HTML, and the packed rows: tone, sentence, address, tones, cells."""
    part = re.split("<h[23]>", page[re.search(rf"<h[23]>{title}", page).start() :], maxsplit=2)[1]
    body = part[part.index("<tbody>") : part.index("</tbody>")]
    rows = [[html.unescape(re.sub("<[^>]+>", "", cell)) for cell in row.split("<td")[1:]] for row in body.split("<tr")]
    packed = re.search(r'octet-stream">(.+?)</script>', part)
    columns = json.loads(gzip.decompress(base64.b64decode(packed[1]))) if packed else []
    return rows[1:], list(zip(*columns, strict=True))


def many(count):
    return builders.frame("ops", [builders.op(f"aten::op{at}", "", MS, 2 * MS + count - at) for at in range(count)])


def test_the_headline_is_the_title_and_its_verdict_a_word():
    page = page_of(builders.judged())
    headline = "v42 ran 4.0 % slower than v41: 100.00 → 104.00 ms per step (+4.00 ms)"
    assert f"<title>{headline}</title>" in page
    assert f"<h1>{headline} <strong>DRIFT</strong></h1>" in page


def test_the_legend_has_the_verdicts_of_the_page():
    page = page_of(builders.judged())
    legend = page[page.index("<h2>What the verdicts mean") :].partition("</details>")[0]
    words = set(re.findall(r"<li>(\w+):", legend))
    assert "DRIFT" in words and "SLOW" not in words
    assert words == {word for word in VERDICTS if f">{word}<" in page}
    assert "<h2>What the verdicts mean" not in page_of(builders.shown())


def words_linked_in(page):
    return set(re.findall(r'href="#(word-[\w-]+)"', page))


def words_explained_in(page):
    return re.findall(r'<dt id="(word-[\w-]+)"', page)


def test_words_of_a_page_lead_to_what_they_mean_at_its_end():
    page = page_of(builders.judged())
    assert {"word-step", "word-of-change", "word-q"} <= words_linked_in(page) <= set(words_explained_in(page))
    assert page.index("</article>") < page.index("<h2>What the words mean")


def test_words_that_a_page_does_not_use_are_not_explained():
    assert not {"word-bubble", "word-own-time", "word-since-good"} & set(words_explained_in(page_of(builders.judged())))


def test_joined_pages_explain_each_word_once():
    pages = [page_of(builders.judged()), page_of(builders.shown())]
    page = reports.joined(pages, "html")
    explained = words_explained_in(page)
    assert sorted(explained) == sorted({word for one in pages for word in words_explained_in(one)})
    assert words_linked_in(page) <= set(explained)


def test_the_policy_names_exactly_what_the_page_holds():
    page = page_of(builders.diff())
    (policy,) = re.findall(r'Content-Security-Policy" content="(.+?)"', page)
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.+?)</{tag}>", page, re.DOTALL)
        found = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{found}'" in html.unescape(policy)
    assert html.unescape(policy).startswith("default-src 'none';")
    assert not re.search(r"\sstyle=|\son\w+=|https?:", page)


@pytest.mark.parametrize("make", [builders.diff, builders.judged, builders.shown, builders.matrix, builders.findings,
                                  builders.diff_with_tree, builders.shown_with_tree])  # fmt: skip
def test_every_document_says_in_html_what_it_says_in_text(make):
    text = reports.render(make(), "text", width=400, details=True, limit=0).replace(" -> ", " → ")
    shown = html.unescape(re.sub(r"<[^>]+>", " ", page_of(make(), limit=0)))
    titles = [line for line in text.splitlines() if line and not line.startswith((" ", "Next:"))]
    assert titles and [line for line in titles if " ".join(line.split()[:4]) not in " ".join(shown.split())] == []


def test_rows_beyond_the_first_are_packed_and_none_is_lost():
    page = page_of(builders.diff(ops=many(1000)))
    rows, packed = table_of(page, "Operators by change")
    assert len(rows) == PLAIN_ROWS and len(packed) == 1000 - PLAIN_ROWS
    assert "… and 920 more rows in this file" in page
    assert [row[4] for row in packed[:2]] == ["aten::op80", "aten::op81"]


def test_numbers_are_those_of_the_csv():
    diff = builders.diff(ops=many(300))
    rows, packed = table_of(page_of(diff), "Operators by change")
    assert [row[0].lstrip(">") for row in rows] + [row[4] for row in packed] == diff.ops["name"].tolist()


def test_hostile_names_are_text_everywhere():
    ops = builders.frame("ops", [builders.op(f"{at}{HOSTILE}", HOSTILE, MS, 2 * MS) for at in range(300)])
    page = page_of(builders.diff(ops=ops, baseline=builders.side(HOSTILE), candidate=builders.side(HOSTILE + "2")))
    assert "<img" not in page and page.count("</script>") == 1 + page.count("octet-stream")
    assert not {"\u2028", "\u202e", "\x1b"} & set(page)
    _, packed = table_of(page, "Operators by change")
    assert packed[0][4].endswith("\\u2028\\u202e\\x1b[31m\"'&")


def test_a_result_without_rows_is_a_page_all_the_same():
    page = page_of(builders.findings([], []))
    assert "<h1>" in page and "Next, in a terminal" in page


def test_a_hundred_thousand_rows_are_cut_and_the_page_says_so():
    page = page_of(builders.diff(ops=many(20_000)))
    assert "… and 10,000 more</p>" in page and len(page) < 400_000


def test_several_comparisons_are_articles_of_one_page():
    page = reports.joined([page_of(builders.diff()), page_of(builders.judged())], "html")
    assert page.count("<article>") == 2 == page.count("<h1>") and page.count("<style>") == 1


def test_tabs_of_several_comparisons_have_names_of_their_own():
    page = reports.joined([page_of(builders.diff()), page_of(builders.judged())], "html")
    names = re.findall(r'<div class="tab" id="([^"]+)"', page)
    assert len({*names}) == len(names) and {"why", "operators", "why-2", "operators-2"} <= {*names}


def test_a_link_to_nothing_leads_to_what_there_is_instead():
    """The server has no history of `a`; the page has a tab of operators, and none of kernels."""
    operators, kernels = Target(HERE, tab="operators"), Target(HERE, tab="kernels")
    nowhere = Target("history", (("KEY", "a"),))
    rows = {"a": replace(nowhere, otherwise=operators), "b": replace(nowhere, otherwise=kernels), "c": operators}
    causes = table("", [Column("cause")], [("", [name]) for name in rows], links=tuple(rows.values()))
    document = Document(
        title="", headline="", blocks=(causes, table("All", [Column("operator")], [("", ["a"])], section="operator")),
        tabs=(Tab("why", "Why"), Tab("operators", "Operators", ("operator",)), Tab("kernels", "Kernels", ("kernel",))),
    )  # fmt: skip
    served = serve([lambda _: document], Look(), Around(pages=(), css="", script="", link=lambda _: ""))
    assert re.findall(r'<td>(?:<a href="([^"]+)">)?([abc])<', served)[:3] == [
        ("#operators", "a"), ("", "b"), ("#operators", "c"),
    ]  # fmt: skip


def test_causes_stand_where_those_above_them_end():
    ends = spans([30.0, -10.0, None], ())
    assert ends == [(0.0, 30.0), (30.0, 20.0), (0.0, 20.0)]
    assert "x=66.67% width=33.33%" in span(ends[1], axis_of_spans(ends), "b")


def test_a_strip_has_a_dot_per_run_and_shows_noise_small():
    drawn = strip(((100.0, 101.0), (100.5,)))
    assert drawn.count("h0") == 3
    places = [int(x) for x in re.findall(r"M(\d+)", drawn)]
    assert max(places) - min(places) < 40  # of 120: the axis spans 5 %


def test_charts_of_nothing_are_empty_or_drawn_without_errors():
    assert chart(Trend("ns", ())) == "" and chart(Curves("bytes", (("v1", ()),))) == ""
    assert "<svg" in chart(Flame(("baseline", "candidate"), ((0, "a", None, None), (0, "b", 0.0, 5.0))))
    assert "<rect" not in chart(Bars(("rest",), (("v1", "0 ns", (-1.0,)),)))


def test_a_flame_is_as_wide_as_the_longer_side_with_children_inside():
    rows = ((0, "step", 100.0, 200.0), (1, "old", 50.0, None), (1, "new", None, 150.0), (0, "other", 200.0, 200.0))
    boxes = re.findall(r'<svg x="([\d.]+)%" y=(\d+) width="([\d.]+)%".*?class=(\w+)', chart(Flame(("a", "b"), rows)))
    assert boxes == [
        ("0.00", "0", "50.00", "r3"), ("0.00", "20", "12.50", "gone"), ("12.50", "20", "37.50", "new"),
        ("50.00", "0", "50.00", "n"),
    ]  # fmt: skip


def test_a_file_of_a_diff_draws_its_tree_and_a_terminal_does_not():
    trace_pair = [str(samples().folder / version / "run1.pt.trace.json.gz") for version in ("v01", "v08")]
    found = compare.diff(None, *trace_pair, options=DiffOptions(with_flame=True))
    page = str(reports.render(found, "html"))
    flame = page.partition("<svg class=flame")[2].partition("</svg></svg>")[0]
    assert "aten::mm" in flame
    # what is on one side alone is framed or dashed
    assert "class=new" in flame and "class=gone" in flame
    # the curves of memory have a table, with the peak of each side
    memory = page.partition("<h3>Memory over time</h3>")[2].partition("</table>")[0]
    assert "<figure" in memory
    assert 20 < memory.count("<tr>") < 60 and "45.81 MiB" in memory and "66.06 MiB" in memory
    # 11 kB of it are the script of the charts
    assert len(page.encode()) < 125_000
    assert "Memory over time" not in str(reports.render(found, "text", details=True))
    plain = compare.diff(None, *trace_pair, options=DiffOptions())
    for format in ("text", "json"):
        assert reports.render(found, format) == reports.render(plain, format)
