"""Parsing of the paths of model calls."""

from __future__ import annotations

from urllib.parse import unquote

_START = "/v2/models/"


def infer_target(path: str) -> tuple[str, str] | None:
    """Return the target of an inference call, None for other paths."""
    return call_target(path, "/infer")


def call_target(path: str, ending: str) -> tuple[str, str] | None:
    """Return model and version of `/v2/models/NAME[/versions/N]` + `ending`, or None.

    `path` is as sent, without the query. The name is unescaped; the version is as written, or "".
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
