"""Which paths are inference calls."""

from __future__ import annotations

from urllib.parse import unquote

_START, _END = "/v2/models/", "/infer"


def infer_target(path: str) -> tuple[str, str] | None:
    """Return (model name, version as written or "") of `/v2/models/NAME[/versions/N]/infer`, None for other paths.

    `path` is as sent, without the query; an escaped name is unescaped.
    """
    if not (path.endswith(_END) and path.startswith(_START)):
        return None
    name = path[len(_START) : -len(_END)]
    version = ""
    if "/" in name:
        name, between, version = name.partition("/versions/")
        if not between or "/" in name or not (version.isascii() and version.isdigit()):
            return None
    if not name:
        return None
    return (unquote(name) if "%" in name else name), version
