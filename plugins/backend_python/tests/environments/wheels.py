"""Wheels with one module and an index of them, for installations without a network."""

from __future__ import annotations

import zipfile
from pathlib import Path

NUMPY = "1.26.4"


def write_wheel(folder: Path, name: str, version: str, requires: tuple[str, ...] = ()) -> Path:
    """Write a wheel whose module has a version."""
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    members = {
        f"{name}.py": f"__version__ = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    members[f"{info}/RECORD"] = "".join(f"{member},,\n" for member in [*members, f"{info}/RECORD"])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for member, text in members.items():
            wheel.writestr(member, text)
    return path


def write_numpy(site_packages: Path, version: str = NUMPY) -> None:
    """Write a fake numpy with a version into a folder."""
    (site_packages / "numpy").mkdir(parents=True)
    (site_packages / "numpy" / "__init__.py").write_text(
        f"__version__ = {version!r}\n", encoding="utf-8"
    )
