"""Installs what the tests need and runs them: `python3 tests/run.py`. Needs Python 3.11 and its venv module, nothing else.

Each tier that needs more than the default one has an environment of its own under .test-venv/, on top of that; a second run reuses it. Arguments after `--` go to pytest:
`python3 tests/run.py default -- -k batching`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / ".test-venv"


@dataclass(frozen=True)
class Tier:
    """What pytest runs and with which options; what its environment has beside that of the default tier.

    `packages` are installed in editable form, `requirements` name files.
    """

    paths: tuple[str, ...]
    options: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()


DEFAULT_PACKAGES = (
    "protos",
    "core",
    "plugins/frontend_http",
    "plugins/frontend_grpc",
    "plugins/batching_dynamic",
    "plugins/batching_sequence",
    "plugins/ensemble",
    "plugins/cache_local",
    "plugins/cache_redis",
    "plugins/batching_slo",
    "plugins/queueing_fair",
    "plugins/metrics_prometheus",
    "plugins/auth_api_keys",
    "plugins/auth_jwt",
    "plugins/backend_onnx",
    "plugins/backend_python",
    "plugins/trace_otel",
    "plugins/agent_checksum",
    "plugins/agent_sealed",
)


def _framework(name: str, package: str, *more: str) -> Tier:
    """Return the tier of a package that brings something large, and of the paths `more`."""
    return Tier((f"{package}/tests", *more), packages=(package,), requirements=(f"tests/requirements-{name}.txt",))


TIERS = {
    "default": Tier(
        ("protos/tests", "core/tests", *(f"{folder}/tests" for folder in DEFAULT_PACKAGES[2:]), "tests"),
        ("--ignore=tests/conformance", "--ignore=tests/frameworks"),
    ),
    "torch": _framework("torch", "plugins/backend_torch", "plugins/backend_python/tests/worker/api"),
    "tf": _framework("tf", "plugins/backend_tf"),
    "openvino": _framework("openvino", "plugins/backend_openvino"),
    "trt": _framework("trt", "plugins/backend_trt"),
    "transformer": _framework("transformer", "plugins/backend_transformer"),
    "clouds": _framework("clouds", "plugins/repo_cloud"),
    "frameworks": Tier(
        ("tests/frameworks",),
        packages=(
            "plugins/backend_torch",
            "plugins/backend_tf",
            "plugins/backend_openvino",
            "plugins/backend_transformer",
        ),
        requirements=("tests/requirements-frameworks.txt",),
    ),
    "conformance": Tier(("tests/conformance",)),
}


def main() -> int:
    """Run the chosen tiers, then print what each took."""
    parser = argparse.ArgumentParser(description="Install what the tests need and run them.")
    parser.add_argument("tiers", nargs="*", metavar="TIER", help=f"which tiers (default: all of {', '.join(TIERS)})")
    own, _, rest = _split(sys.argv[1:])
    chosen = parser.parse_args(own).tiers or list(TIERS)
    unknown = [name for name in chosen if name not in TIERS]
    if unknown:
        parser.error(f"no tier '{unknown[0]}', there are: {', '.join(TIERS)}")
    results = {name: _run(name, TIERS[name], rest) for name in chosen}
    for name, (status, minutes) in results.items():
        print(f"tier {name}: {'passed' if status == 0 else 'FAILED'} in {minutes:.1f} min")
    return max(status for status, _ in results.values())


def _split(arguments: list[str]) -> tuple[list[str], str, list[str]]:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], "--", arguments[at + 1 :]


def _run(name: str, tier: Tier, pytest_arguments: list[str]) -> tuple[int, float]:
    started = time.monotonic()
    python = _environment(name, tier)
    print(f"tier {name}: environment ready after {(time.monotonic() - started) / 60:.1f} min", flush=True)
    status = subprocess.run(
        [python, "-m", "pytest", *tier.paths, *tier.options, *pytest_arguments], cwd=ROOT, check=False
    ).returncode
    return status, (time.monotonic() - started) / 60


def _environment(name: str, tier: Tier) -> str:
    """Return the interpreter of the tier's environment, which is that of the default tier unless something is to be added."""
    default = ENVIRONMENTS / "default"
    python = _installed(default, DEFAULT_PACKAGES, ("tests/requirements.txt",))
    if not tier.packages and not tier.requirements:
        return python
    return _installed(ENVIRONMENTS / name, tier.packages, tier.requirements, over=default)


def _installed(folder: Path, packages: Sequence[str], requirements: Sequence[str], over: Path | None = None) -> str:
    """Return the interpreter of an environment with those packages; it has those of `over` too, unless its own are of another version."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    if over is not None:
        _site(folder).joinpath("over.pth").write_text(f"import site; site.addsitedir({str(_site(over))!r})\n")
    install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for requirement in requirements:
        install += ["-r", requirement]
    for package in packages:
        install += ["-e", f"./{package}"]
    # Editable installs of siblings that name each other by folder are a conflict for pip: plain names are not.
    environment = {**os.environ, "TRITONPY_PLAIN_DEPENDENCIES": "1"}
    subprocess.run(install, cwd=ROOT, env=environment, check=True)
    return str(python)


def _site(folder: Path) -> Path:
    return next(folder.glob("lib/python*/site-packages"))


if __name__ == "__main__":
    sys.exit(main())
