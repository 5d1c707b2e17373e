"""The archive for a bug report: the results, versions and configuration, without secrets."""

from __future__ import annotations

import importlib.metadata
import io
import os
import re
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path

from tritonpy.repository import redact_urls

_SECRET = re.compile(
    r"(?i)^(\s*[\w.-]*(?:password|secret|token|key|credential|hash)[\w.-]*\s*:\s*)(\S.*)$"
)
REMOVED = "(removed)"


def write_bundle(path: Path, report: str, server_yaml: Path | None) -> None:
    """Write a .tar.gz with the JSON `report`, the installed packages and the configuration.

    Values of server.yaml whose keys suggest a secret, and passwords in URLs, are removed. Raises
    OSError if the file cannot be written.
    """
    packages = sorted(
        f"{each.metadata['Name']}=={each.version}" for each in importlib.metadata.distributions()
    )
    names = sorted(name for name in os.environ if name.startswith(("TRITON", "CUDA", "ORT", "OMP")))
    content = {
        "report.json": report,
        "packages.txt": "\n".join(packages),
        "environment.txt": "\n".join(names),
    }
    if server_yaml is not None:
        content["server.yaml"] = redacted(server_yaml.read_text(encoding="utf-8", errors="replace"))
    _write(path, content)


def redacted(text: str) -> str:
    """Return a YAML text without the values of keys that suggest a secret."""
    lines = [_SECRET.sub(rf"\g<1>{REMOVED}", line) for line in text.splitlines()]
    return redact_urls("\n".join(lines))


def _write(path: Path, content: Mapping[str, str]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in content.items():
            data = text.encode()
            entry = tarfile.TarInfo(f"tritonpy-doctor/{name}")
            entry.size, entry.mtime = len(data), int(time.time())
            archive.addfile(entry, io.BytesIO(data))
