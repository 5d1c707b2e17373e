from __future__ import annotations

import io

from rich.console import Console

from tritonpy_analyzer.progress import BarView, progress_view


def test_without_a_terminal_each_phase_and_decision_is_a_line_with_its_time():
    out = io.StringIO()
    with progress_view(60, out) as view:
        view.phase("measuring")
        view.progress(12.4, "batch 8")
        view.verdict("batch 4: worse")
    assert out.getvalue() == "    0 s  measuring\n   12 s    batch 4: worse\n"


def test_a_terminal_has_a_bar_with_the_time_left_and_the_best_configuration():
    out = io.StringIO()
    view = BarView(Console(file=out, force_terminal=True, width=120), 60)
    view.start()
    view.phase("race 1: [4] candidates")
    view.progress(30, "batch 8")
    view.verdict("batch 4: worse [than] batch 8")
    view.stop()
    displayed = out.getvalue()
    assert "race 1: [4] candidates" in displayed
    assert "best: batch 8" in displayed
    assert "worse [than] batch 8" in displayed
