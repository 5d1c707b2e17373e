from __future__ import annotations

import io

from rich.console import Console

from tritonpy_bench.report.live_view import LiveView, sparkline
from tritonpy_bench.report.plain_view import PlainView
from tritonpy_load_generator.figures.histogram import make_histogram
from tritonpy_load_generator.figures.snapshot import Snapshot

from .results import TARGET, level, options


def snapshot(**more):
    return Snapshot(
        begin_ns=0, end_ns=10**9, latency=make_histogram([1_000_000] * 5), succeeded=5, **more
    )


def test_bars_are_as_high_as_their_values():
    assert sparkline([0, 50, 100]) == "▁▄█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""


def test_the_live_view_shows_progress_and_keeps_the_results():
    out = io.StringIO()
    view = LiveView(Console(file=out, force_terminal=True, width=120), options())
    view.begin(TARGET, ["no statistics"])
    view.update(4, 0, snapshot())
    view.update(4, 2, snapshot(errors={"[red]no room[/red]": 3}, in_flight=9))
    view.measured(level(4.0))
    view.update(5, 1, snapshot())
    view.end()
    drawn = out.getvalue()
    assert "warming up" in drawn
    assert "window 2 of at most 10" in drawn
    assert "3 x [red]no room[/red]" in drawn  # a server's text is no markup
    kept = drawn[drawn.rindex("note: no statistics") :]
    assert "concurrency 4: stable" in kept
    assert "1,234 requests/s" in kept


def test_without_a_terminal_each_finished_level_is_printed():
    out = io.StringIO()
    view = PlainView(out)
    view.begin(TARGET, ["no statistics"])
    view.update(1, 1, snapshot(errors={"no": 2}))
    view.measured(level())
    view.end()
    assert out.getvalue().startswith("model m on toy 1\nnote: no statistics\nconcurrency 1: stable")
    assert "\x1b" not in out.getvalue()
