"""Collect the wheels for an offline installation: `python3 tools/wheelhouse.py onnx python`.

The folder contains the wheels of tritonpy, of the named plugins, and of everything they need. Copy
it to a machine without network, and install there:

    pip install --no-index --find-links wheelhouse tritonpy tritonpy-backend-onnx

--platform aarch64 collects the wheels for 64-bit ARM, such as Raspberry Pi, Jetson and Graviton.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

from distributions import (
    ROOT,
    UnknownDistribution,
    find,
    read_distributions,
    run_build,
    run_pip,
    with_siblings,
)
from requirements import outside_requirements

# The C libraries that wheels of these platforms may need, newest first.
_MANYLINUX = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")


def main(argv: Sequence[str] | None = None) -> int:
    """Collect the wheels; return the exit status."""
    summary, _, details = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=details, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plugins", nargs="+", help="names as for tools/install.py")
    parser.add_argument("--platform", choices=["x86_64", "aarch64"], help="default: this machine")
    parser.add_argument(
        "--python", default="3.11", metavar="VERSION", help="with --platform (default: %(default)s)"
    )
    parser.add_argument(
        "--output", type=Path, default=ROOT / "wheelhouse", help="default: wheelhouse"
    )
    arguments = parser.parse_args(argv)
    try:
        collect(arguments.plugins, arguments.output, arguments.platform, arguments.python)
    except UnknownDistribution as error:
        sys.exit(f"{parser.prog}: {error}")
    except subprocess.CalledProcessError:
        return 1  # pip has printed the reason
    wheels = list(arguments.output.glob("*.whl"))
    size = sum(each.stat().st_size for each in wheels)
    print(f"{len(wheels)} wheels, {size / 1e6:.0f} MB, in {arguments.output}")
    return 0


def collect(
    names: Sequence[str], output: Path, platform: str | None = None, python: str = "3.11"
) -> None:
    """Write the wheels to `output`. Raises UnknownDistribution and CalledProcessError."""
    distributions = read_distributions()
    chosen = [find("core", distributions), *(find(name, distributions) for name in names)]
    siblings = with_siblings([f"{each.name}{extras}" for each, extras in chosen], distributions)
    requirements = outside_requirements(names)
    output.mkdir(parents=True, exist_ok=True)
    target = []
    if platform is not None:
        for name in _MANYLINUX:
            target += ["--platform", f"{name}_{platform}"]
        target += ["--python-version", python]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        interpreter = Path(folder) / "bin" / "python"
        folders = [str(each.folder) for each in siblings]
        run_build(interpreter, Path(folder) / "build", ["wheel", "-q", "-w", str(output), *folders])
        run_pip(
            interpreter,
            ["download", "-q", "--only-binary=:all:", *target, "-d", str(output), *requirements],
        )


if __name__ == "__main__":
    sys.exit(main())
