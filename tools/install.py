"""Install tritonpy and plugins from this checkout: `python3 tools/install.py torch`.

A plugin's name is that of its distribution or of its folder, with or without its kind
(`backend_torch` or `torch`). Extras follow in brackets: 'repo_cloud[s3]'. The packages are
installed into the environment of the interpreter that runs this script if it is a virtual
environment or has tritonpy, else into .venv, which is created if missing. Only packages that are
missing or older than their source are built. With --compiled, the request path is then compiled to
machine code, which needs a C compiler and takes a minute.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from distributions import (
    ROOT,
    Distribution,
    UnknownDistribution,
    find,
    read_distributions,
    run_build,
    run_compiler,
    run_pip,
    with_siblings,
)

SOURCES = {".py", ".toml", ".json", ".txt", ".typed", ".html", ".js", ".proto"}
# Runs in the target environment and prints which of the distributions on its command line are
# installed.
INSPECT = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        it = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        continue
    found[name] = {
        "version": it.version,
        "by_folder": any(" @ " in text for text in it.requires or ()),
        "origin": json.loads(it.read_text("direct_url.json") or "{}"),
        "time": it.locate_file(f"{name.replace('-', '_')}-{it.version}.dist-info").stat().st_mtime,
    }
print(json.dumps(found))
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Install the plugins named on the command line and return the exit status."""
    summary, _, details = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=details)
    parser.add_argument(
        "plugins",
        nargs="*",
        metavar="PLUGIN",
        help="for example: onnx python torch 'repo_cloud[s3]'",
    )
    parser.add_argument("--environment", type=Path, help="the virtual environment to install into")
    parser.add_argument(
        "--compiled", action="store_true", help="compile the request path to machine code"
    )
    parser.add_argument("--force-reinstall", action="store_true", help="rebuild all named packages")
    arguments = parser.parse_args(argv)
    distributions = read_distributions()
    try:
        named = [find(each, distributions) for each in ["tritonpy", *arguments.plugins]]
    except UnknownDistribution as error:
        parser.error(str(error))
    needed = with_siblings([each.name + extras for each, extras in named], distributions)
    python = _interpreter(arguments.environment)
    _ensure_pip(python)
    installed = _inspect(python, needed)
    stale = [
        each
        for each in needed
        if arguments.force_reinstall or is_stale(each, installed.get(each.name))
    ]
    try:
        if stale:
            print(f"building {', '.join(each.name for each in stale)}", flush=True)
            folders = [str(each.folder) for each in stale]
            run_build(
                python,
                _environment(python) / "build-backend",
                ["install", "-q", "--force-reinstall", *folders],
            )
        requirements = [f"{each.name}{extras}=={each.version}" for each, extras in named]
        run_pip(python, ["install", "-q", *requirements])
        if arguments.compiled:
            environment = _environment(python)
            run_compiler(python, environment / "compiler", ["--environment", str(environment)])
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    print(
        f"installed in {_environment(python)}: "
        f"{', '.join(each.name + extras for each, extras in named)}"
    )
    return 0


def is_stale(distribution: Distribution, installed: Mapping[str, Any] | None) -> bool:
    """Return whether the environment lacks the current state of `distribution`."""
    if installed is None or installed["version"] != distribution.version or installed["by_folder"]:
        return True
    origin = installed["origin"]
    if origin.get("url") != distribution.folder.as_uri():
        return True
    project = distribution.folder / "pyproject.toml"
    if origin.get("dir_info", {}).get("editable"):
        return bool(project.stat().st_mtime > installed["time"])
    files = [
        path for path in distribution.folder.rglob("*") if path.suffix in SOURCES and path.is_file()
    ]
    return bool(max(path.stat().st_mtime for path in files) > installed["time"])


def _interpreter(environment: Path | None) -> Path:
    """Return the interpreter of the target environment, which is created if missing."""
    if environment is None and (sys.prefix != sys.base_prefix or _has_tritonpy()):
        return Path(sys.executable)
    folder = environment or ROOT / ".venv"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        venv.create(folder, with_pip=True)
    return python.absolute()


def _ensure_pip(python: Path) -> None:
    """Install pip if the environment lacks it, as those made by uv do."""
    if subprocess.run(
        [str(python), "-c", "import pip"], capture_output=True, check=False
    ).returncode:
        subprocess.run([str(python), "-m", "ensurepip"], stdout=subprocess.DEVNULL, check=True)


def _has_tritonpy() -> bool:
    try:
        importlib.metadata.distribution("tritonpy")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _inspect(python: Path, distributions: Sequence[Distribution]) -> dict[str, Any]:
    command = [str(python), "-I", "-c", INSPECT, *(each.name for each in distributions)]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    return found


def _environment(python: Path) -> Path:
    script = "import sys; print(sys.prefix)"
    return Path(
        subprocess.run(
            [str(python), "-c", script], capture_output=True, text=True, check=True
        ).stdout.strip()
    )


if __name__ == "__main__":
    sys.exit(main())
