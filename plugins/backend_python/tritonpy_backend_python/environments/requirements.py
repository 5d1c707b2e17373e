"""The requirements.txt of a model, with all local files that it names.

Paths are resolved as pip and uv do. `-r` and `-c` are relative to the file that contains them.
Paths of packages, `-e` and `-f` are relative to the folder of requirements.txt, in which the
installer runs. The digest includes the contents of all these files, so a changed wheel, constraint
or source file leads to another environment. For URLs and variables such as `${TOKEN}`, only the
text counts.
"""

from __future__ import annotations

import hashlib
import os
import re
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonpy_backend_python.environments.digests import Digests

FILE_NAME = "requirements.txt"
_COMMENT = re.compile(r"(^|\s+)#.*$")
_CONTINUED = re.compile(r"\\\r?\n")
_FILES = re.compile(r"(?:-[rc]\s*|--(?:requirement|constraint)(?:\s*=\s*|\s+))(?P<path>.+)")
_PATHS = re.compile(r"(?:-[ef]\s*|--(?:editable|find-links)(?:\s*=\s*|\s+))(?P<path>.+)")
_EDITABLE = re.compile(r"-e|--editable")
_NAMED = re.compile(r"[\w.-]+\s*(?:\[[^\]]*\])?\s*@\s*(?P<path>.+)")
_BEHIND_A_PATH = re.compile(r"\s*;.*$|\s+--.*$")
_EXTRAS = re.compile(r"\[[^\]/]*\]$")


@dataclass(frozen=True)
class Requirements:
    """The packages to install: an installer's `arguments` in `folder`, and a `digest`."""

    source: str
    folder: Path
    arguments: tuple[str, ...]
    digest: str


NO_REQUIREMENTS = Requirements("no requirements", Path("/"), (), "")


def find_requirements(
    version_directory: Path, model_directory: Path, digests: Digests
) -> Requirements | None:
    """Return the requirements next to model.py, else those in the model's folder, else None.

    Raises `OSError` if the file cannot be read.
    """
    for folder in (version_directory, model_directory):
        path = folder / FILE_NAME
        if path.is_file():
            top = path.absolute()
            return Requirements(str(top), top.parent, ("-r", str(top)), _digest(top, digests))
    return None


def _digest(top: Path, digests: Digests) -> str:
    whole = hashlib.sha256()
    waiting, seen = [top], {top}
    while waiting:
        path = waiting.pop(0)
        whole.update(path.read_bytes())
        for line in _lines(path):
            found = _mentioned(line, path.parent, top.parent)
            if found is None or found in seen:
                continue
            seen.add(found)
            if _FILES.fullmatch(line):
                waiting.append(found)
            else:
                whole.update(_content(line, found, digests))
    return whole.hexdigest()


def _content(line: str, path: Path, digests: Digests) -> bytes:
    # An editable package is used where it is, so its path matters.
    place = path if _EDITABLE.match(line) else ""
    return f"{place}\0{digests.of(path)}\0".encode("utf-8", "surrogateescape")


def _lines(path: Path) -> Iterator[str]:
    text = _CONTINUED.sub("", path.read_text(encoding="utf-8-sig", errors="replace"))
    for line in text.splitlines():
        meaning = _COMMENT.sub("", line).strip()
        if meaning:
            yield meaning


def _mentioned(line: str, folder: Path, top: Path) -> Path | None:
    """Return the existing file or folder that a line of a file in `folder` names, or None."""
    if match := _FILES.fullmatch(line):
        candidate, base = match["path"], folder
    elif match := _PATHS.fullmatch(line) or _NAMED.fullmatch(line):
        candidate, base = match["path"], top
    elif _looks_like_a_path(line):
        candidate, base = line, top
    else:
        return None
    path = os.path.normpath(base / _EXTRAS.sub("", _local(_BEHIND_A_PATH.sub("", candidate))))
    return Path(path) if os.path.exists(path) else None  # the installer reports missing files


def _looks_like_a_path(line: str) -> bool:
    first = _BEHIND_A_PATH.sub("", line)
    return (
        "/" in first
        or first.startswith(".")
        or first.endswith((".whl", ".zip", ".tar.gz", ".tar.bz2", ".tar.xz"))
    )


def _local(text: str) -> str:
    text = text.strip().strip("'\"")
    if text.startswith("file:"):
        return urllib.parse.unquote(urllib.parse.urlsplit(text).path)
    return text
