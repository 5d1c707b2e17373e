"""Selection of the view: live in a terminal, else plain lines."""

from __future__ import annotations

import sys

from tritonpy_bench.options import BenchOptions
from tritonpy_bench.report.plain_view import PlainView
from tritonpy_bench.session import View


def choose_view(options: BenchOptions, plain: bool) -> View:
    """Return a live view if standard output is a terminal and not `plain`, else a plain one."""
    if plain or not sys.stdout.isatty():
        return PlainView(sys.stdout)
    from rich.console import Console

    from tritonpy_bench.report.live_view import LiveView

    return LiveView(Console(), options)
