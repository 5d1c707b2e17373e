"""Which paths are calls of a model."""

from __future__ import annotations

from urllib.parse import unquote

_START = "/v2/models/"


def infer_target(path: str) -> tuple[str, str] | None:
    """Return whom an inference call asks, None for other paths: `call_target` with the ending `/infer`."""
    return call_target(path, "/infer")


def call_target(path: str, ending: str) -> tuple[str, str] | None:
    """Return (model name, version as written or "") of `/v2/models/NAME[/versions/N]` and `ending`, None for other paths.

    `path` is as sent, without the query; an escaped name is unescaped.
    """
    if not (path.endswith(ending) and path.startswith(_START)):
        return None
    name = path[len(_START) : -len(ending)]
    version = ""
    if "/" in name:
        name, between, version = name.partition("/versions/")
        if not between or "/" in name or not (version.isascii() and version.isdigit()):
            return None
    if not name:
        return None
    return (unquote(name) if "%" in name else name), version
