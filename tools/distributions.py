"""The distributions of this checkout: their metadata from pyproject.toml, and their build."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD_BACKENDS = ("hatchling>=1.27", "flit_core>=3.11,<4")
NATIVE_BUILD_BACKENDS = ("scikit-build-core>=0.11", "cmake>=3.25", "ninja>=1.11")
COMPILER = ("mypy==2.4.1", "setuptools>=80", "wheel>=0.45")  # also in tests/requirements.txt
_REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*?)\s*(?P<extras>\[[\w,\s-]*\])?$")
_NAME = re.compile(r"^[A-Za-z0-9][\w.-]*")
_WITHOUT_KIND = frozenset({"tritonserver_api"})  # the name of an interface
_EXTRAS = re.compile(r"^[A-Za-z0-9][\w.-]*\s*\[(?P<extras>[\w,\s-]*)\]")


class UnknownDistribution(Exception):
    """The checkout has no distribution of the given name."""


@dataclass(frozen=True)
class Distribution:
    """A folder with a pyproject.toml, its `requirements`, and those of each of its `extras`."""

    name: str
    version: str
    folder: Path
    requirements: tuple[str, ...]
    extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def short_name(self) -> str:
        """The folder's name without its kind: `torch` for `plugins/backend_torch`."""
        if self.folder.name in _WITHOUT_KIND:
            return self.folder.name
        return self.folder.name.partition("_")[2] or self.folder.name


def read_distributions(root: Path = ROOT) -> dict[str, Distribution]:
    """Return every distribution of the checkout by name."""
    projects = sorted(
        path
        for pattern in ("*", "plugins/*", "libs/*")
        for path in root.glob(f"{pattern}/pyproject.toml")
    )
    return {each.name: each for each in map(_read, projects)}


def _read(path: Path) -> Distribution:
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    project = document["project"]
    requirements = list(project.get("dependencies", ()))
    extras = project.get("optional-dependencies", {})
    if "dependencies" in project.get("dynamic", ()):
        hook = document["tool"]["hatch"]["metadata"]["hooks"]["custom"]
        requirements = [
            *hook["libraries"],
            *(f"{name}=={project['version']}" for name in hook["siblings"]),
        ]
        extras = hook["extras"]
    return Distribution(
        project["name"], project["version"], path.parent, tuple(requirements), extras
    )


def requirement_name(requirement: str) -> str:
    """Return the name in `requirement`, normalized as in package indexes."""
    found = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


def requirement_extras(requirement: str) -> set[str]:
    """Return the extras that `requirement` asks for."""
    found = _EXTRAS.match(requirement)
    return {extra.strip() for extra in found["extras"].split(",")} if found else set()


def find(reference: str, distributions: Mapping[str, Distribution]) -> tuple[Distribution, str]:
    """Return the distribution named by `reference`, and its extras in brackets, or "".

    The name is that of the distribution or its folder, with or without its kind. Raises
    UnknownDistribution.
    """
    parsed = _REQUIREMENT.match(reference.strip())
    name = requirement_name(parsed["name"]) if parsed else reference
    names = {"core": distributions["tritonpy"]} if "tritonpy" in distributions else {}
    for each in distributions.values():
        for alias in (each.short_name, each.folder.name, each.name):
            names[requirement_name(alias)] = each
    if parsed is None or name not in names:
        near = difflib.get_close_matches(name, names, 1)
        short = ", ".join(sorted(each.short_name for each in distributions.values()))
        hint = f"did you mean '{near[0]}'?" if near else f"available: {short}"
        raise UnknownDistribution(f"no plugin '{reference}', {hint}")
    return names[name], parsed["extras"] or ""


def with_siblings(
    requirements: Iterable[str], distributions: Mapping[str, Distribution]
) -> list[Distribution]:
    """Return the distributions of the checkout that `requirements` need, each once."""
    found: dict[str, Distribution] = {}
    seen: set[str] = set()
    waiting = list(requirements)
    while waiting:
        text = waiting.pop(0)
        sibling = distributions.get(requirement_name(text))
        if sibling is not None and text not in seen:
            seen.add(text)
            found[sibling.name] = sibling
            waiting.extend(sibling.requirements)
            for extra in sorted(requirement_extras(text)):
                waiting.extend(sibling.extras.get(extra, ()))
    return list(found.values())


def run_pip(
    python: Path, arguments: Sequence[str], variables: Mapping[str, str] | None = None
) -> None:
    """Run pip in the environment of `python`. Raises subprocess.CalledProcessError."""
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **(variables or {})}
    subprocess.run([str(python), "-m", "pip", *arguments], env=environment, check=True)


def run_compiler(python: Path, folder: Path, arguments: Sequence[str]) -> None:
    """Run tools/compiler.py with the interpreter `python`, whose environment has the distributions.

    The compiler is installed into `folder`, unless it is there. Raises
    subprocess.CalledProcessError.
    """
    if not (folder / "mypyc").is_dir():
        run_pip(python, ["install", "-q", "--target", str(folder), *COMPILER])
    subprocess.run(
        [str(python), str(ROOT / "tools" / "compiler.py"), *arguments],
        env={**os.environ, "PYTHONPATH": str(folder)},
        check=True,
    )


def run_build(python: Path, backend: Path, arguments: Sequence[str]) -> None:
    """Run a pip command that builds distributions with names, not folders, as dependencies.

    The build backends are installed once, into the folder `backend`. Otherwise, pip downloads one
    for each build. That of C++ sources is installed if one of the distributions needs it.
    """
    needed = {"flit_core": BUILD_BACKENDS}
    if any(map(_is_native, arguments)):
        needed["scikit_build_core"] = NATIVE_BUILD_BACKENDS
    for module, backends in needed.items():
        if not (backend / module).is_dir():
            run_pip(python, ["install", "-q", "--target", str(backend), *backends])
    variables = {"PYTHONPATH": str(backend), "TRITONPY_PLAIN_DEPENDENCIES": "1"}
    run_pip(python, [*arguments, "--no-deps", "--no-build-isolation"], variables)


def _is_native(argument: str) -> bool:
    """Return whether the argument of pip is the folder of a distribution with C++ sources."""
    project = Path(argument.partition("[")[0]) / "pyproject.toml"
    return project.is_file() and "scikit_build_core" in project.read_text(encoding="utf-8")
