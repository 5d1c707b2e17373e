from __future__ import annotations

import json
import re
from html.parser import HTMLParser

from tritonpy_analyzer.report.csv_report import COLUMNS, write_csv
from tritonpy_analyzer.report.html import render_html, write_html
from tritonpy_analyzer.report.text import study_text

from .studies import candidate, study


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.addresses = [], []

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in {"src", "href"}]
        if tag not in {"meta", "br", "link", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_complete_and_needs_no_network(tmp_path):
    write_html(tmp_path / "report.html", study())
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.addresses == []
    assert "prefers-color-scheme: dark" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    data = re.search(r'<script type="application/json" id="study">(.*?)</script>', page, re.DOTALL)
    assert json.loads(data.group(1))["recommended"]["settings"][0] == ["toy", "max_batch_size", 16]


def test_texts_from_servers_are_no_markup():
    evil = "</script><img src=x onerror=alert(1)>"
    page = render_html(study(server=evil, candidates=[candidate(reason=evil)]))
    assert "<img" not in page


def test_the_text_has_the_answer_the_gain_and_what_limits():
    text = study_text(study())
    assert "use batch 16, 1 instance, dynamic batching" in text
    assert "800/s (95 %: 776/s to 824/s)" in text
    assert "2.00 times the present configuration (95 %: 1.80 to 2.20)" in text
    assert "p99 19 ms" in text
    assert "batch 32, 1 instance, dynamic batching: 600/s" in text
    assert "limited by the queue" in text
    assert "2 dropped" in text


def test_the_text_says_when_nothing_better_was_found():
    text = study_text(study(status="keep", recommended=None))
    assert "keep the present configuration" in text
    assert "this machine is too busy" in study_text(study(status="too_noisy", recommended=None))
    none = study(status="no_config", recommended=None, violated="violates p99<20 ms at any rate")
    assert "no configuration keeps the constraints: violates p99<20 ms at any rate" in study_text(
        none
    )
    assert "the closest is batch 16" in study_text(none)
    assert [each.exit_status for each in (study(), none, study(status="too_noisy"))] == [0, 1, 3]


def test_the_csv_has_model_analyzers_columns(tmp_path):
    write_csv(tmp_path / "result.csv", study())
    head, *rows = (tmp_path / "result.csv").read_text(encoding="utf-8").splitlines()
    assert head == ",".join(COLUMNS)
    assert len(rows) == 4
    assert rows[-1].startswith("toy,1,")
    assert "toy_config_default" in rows[-1]
