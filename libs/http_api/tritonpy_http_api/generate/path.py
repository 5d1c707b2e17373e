"""Parsing of the paths of generate calls."""

from __future__ import annotations

from typing import NamedTuple

from tritonpy_http_api.infer_path import call_target


class GenerateTarget(NamedTuple):
    """The model of a generate call.

    `version` is as written, "" for none; `streams` requests events.
    """

    model: str
    version: str
    streams: bool


def generate_target(path: str) -> GenerateTarget | None:
    """Return the target of `/v2/models/NAME[/versions/N]/generate` or `…/generate_stream`, or None.

    `path` is as sent, without the query.
    """
    streams = path.endswith("_stream")
    target = call_target(path, "/generate_stream" if streams else "/generate")
    return GenerateTarget(*target, streams) if target else None
