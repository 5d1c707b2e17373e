"""Installs what the tests need and runs them: `python3 tests/run.py`. Needs Python 3.11 and its venv module, nothing else.

Each tier has an environment of its own under .test-venv/; a second run reuses it. Arguments after `--` go to pytest:
`python3 tests/run.py default -- -k batching`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / ".test-venv"


@dataclass(frozen=True)
class Tier:
    """Packages that are installed in editable form, requirement files, and what pytest runs and with which options."""

    packages: tuple[str, ...]
    paths: tuple[str, ...]
    options: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ("tests/requirements.txt",)


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
)


def _framework(name: str, *packages: str, also: tuple[str, ...] = ()) -> Tier:
    """Return the tier of packages that bring something large: its environment has that beside the default packages."""
    return Tier(
        (*DEFAULT_PACKAGES, *packages),
        (*(f"{package}/tests" for package in packages), *also),
        requirements=("tests/requirements.txt", f"tests/requirements-{name}.txt"),
    )


TIERS = {
    "default": Tier(
        DEFAULT_PACKAGES,
        ("protos/tests", "core/tests", *(f"{folder}/tests" for folder in DEFAULT_PACKAGES[2:]), "tests"),
        ("--ignore=tests/conformance", "--ignore=tests/frameworks"),
    ),
    "torch": _framework("torch", "plugins/backend_torch", also=("plugins/backend_python/tests/worker/api",)),
    "tf": _framework("tf", "plugins/backend_tf"),
    "openvino": _framework("openvino", "plugins/backend_openvino"),
    "trt": _framework("trt", "plugins/backend_trt"),
    "transformer": _framework("transformer", "plugins/backend_transformer"),
    "clouds": _framework("clouds", "plugins/repo_cloud"),
    "frameworks": Tier(
        (
            *DEFAULT_PACKAGES,
            "plugins/backend_torch",
            "plugins/backend_tf",
            "plugins/backend_openvino",
            "plugins/backend_transformer",
        ),
        ("tests/frameworks",),
        requirements=("tests/requirements.txt", "tests/requirements-frameworks.txt"),
    ),
    "conformance": Tier(DEFAULT_PACKAGES, ("tests/conformance",)),
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
    folder = ENVIRONMENTS / name
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    # Editable installs of siblings that name each other by folder are a conflict for pip: plain names are not.
    environment = {**os.environ, "TRITONPY_PLAIN_DEPENDENCIES": "1"}
    for requirement in tier.requirements:
        install += ["-r", requirement]
    for package in tier.packages:
        install += ["-e", f"./{package}"]
    subprocess.run(install, cwd=ROOT, env=environment, check=True)
    return python


if __name__ == "__main__":
    sys.exit(main())
