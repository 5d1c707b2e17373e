from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from tritonpy_bench.report.html import names, page, write_html

from .results import level, result

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Checker(HTMLParser):
    """Fails if a tag is not closed, and collects the URLs that a page would fetch."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.fetched = []

    def handle_starttag(self, tag, attrs):
        self.fetched += [value for name, value in attrs if name in {"src", "href", "srcset"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def checked(*results):
    text = page(list(results))
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert checker.fetched == []
    assert "<script" not in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert not re.search(r"@import|url\(", text)
    return text


def test_a_report_is_one_file_with_all_plots_and_figures(tmp_path):
    text = checked(result(level(1.0), level(8.0)))
    assert text.count("<svg") == 5
    for expected in (
        "Latency against throughput",
        "percentile",
        "over time",
        "Time inside the server",
        "concurrency 8",
    ):
        assert expected in text
    write_html(tmp_path / "r.html", [result()])
    assert (tmp_path / "r.html").read_text() == checked(result())


def test_warnings_and_errors_are_at_the_top():
    text = checked(
        result(
            level(failed=2, errors={"<b>no</b>": 2}, complaints=("the client was the bottleneck",))
        )
    )
    assert "ended early: gone" in checked(result(trouble="gone"))
    assert text.index("the client was the bottleneck") < text.index("<svg")
    assert "2 requests failed" in text
    assert "2 x &lt;b&gt;no&lt;/b&gt;" in text


@pytest.mark.parametrize(
    "made", [result(levels=()), result(level(latencies=(), requests=0, server=(), timeline=()))]
)
def test_a_result_without_measurements_has_a_valid_page(made):
    checked(made)


def test_several_results_are_drawn_side_by_side():
    text = checked(result(server="before"), result(server="after", decoupled=True))
    assert "2 results" in text
    assert "before p50" in text
    assert "after p99" in text


def test_results_have_different_names():
    assert names([result()]) == [""]
    assert names([result(server="a"), result(server="b")]) == ["a", "b"]
    assert names([result(), result(protocol="grpc")]) == ["toy 1 http", "toy 1 grpc"]
    assert names([result(), result(model="n")]) == ["m on toy 1 http", "n on toy 1 http"]
    assert names([result(), result()]) == ["1 toy 1", "2 toy 1"]
