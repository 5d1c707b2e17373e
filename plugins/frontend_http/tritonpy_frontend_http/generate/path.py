"""Which paths are generate calls."""

from __future__ import annotations

from typing import NamedTuple

from tritonpy_frontend_http.infer_path import call_target


class GenerateTarget(NamedTuple):
    """Whom a generate call asks; `version` as written, "" for none. `streams`: its answers are wanted as events."""

    model: str
    version: str
    streams: bool


def generate_target(path: str) -> GenerateTarget | None:
    """Return whom `/v2/models/NAME[/versions/N]/generate` or `…/generate_stream` asks, None for other paths.

    `path` is as sent, without the query.
    """
    streams = path.endswith("_stream")
    target = call_target(path, "/generate_stream" if streams else "/generate")
    return GenerateTarget(*target, streams) if target else None
