"""Compile the request path to machine code: `python tools/compiler.py --environment .venv`.

The table `[tool.tritonpy]` in the pyproject.toml of a distribution lists modules that mypyc
compiles. The same source runs interpreted and compiled. Every distribution is compiled by itself,
so compiled and interpreted distributions work together. Needs a C compiler, and an interpreter with
mypy and the dependencies of the distributions: `tools/install.py --compiled` and `tools/release.py
--compiled` provide one, and the default test environment is one.

With --wheels, each pure wheel in a folder gets a second one that fits this version of Python and
this platform. With --environment, the extension modules are added to the distributions in an
environment. If they are links to the checkout, this is an error.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from distributions import Distribution, read_distributions, requirement_name

SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
# Runs in a copy of the distribution. Arguments: group name, then the files of the modules.
BUILD = """
import sys
from mypyc.build import mypycify
from setuptools import setup
_, group, *files = sys.argv
# Without the strict checks of the project: stubs of its dependencies may be missing here.
options = ["--config-file=", "--explicit-package-bases", "--ignore-missing-imports"]
options.append("--follow-imports=silent")
extensions = mypycify([*options, *files], group_name=group, opt_level="3", debug_level="0")
sys.argv = ["setup", "-q", "build_ext", "--inplace"]
setup(name=group, packages=[], ext_modules=extensions)
"""


class CompilationFailed(Exception):
    """mypyc or the C compiler refused a distribution; the text is what it printed."""


def main(argv: Sequence[str] | None = None) -> int:
    """Compile all distributions that list modules; return the exit status."""
    summary, _, details = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=details)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--wheels", type=Path, help="a folder of wheels")
    where.add_argument("--environment", type=Path, help="a virtual environment")
    arguments = parser.parse_args(argv)
    try:
        compiled = compile_all(read_distributions())
        if arguments.environment is not None:
            install(compiled, arguments.environment)
        else:
            add_to_wheels(compiled, arguments.wheels)
    except CompilationFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def compiled_modules(distribution: Distribution) -> list[str]:
    """Return the files that mypyc compiles, relative to the folder of the distribution."""
    document = tomllib.loads((distribution.folder / "pyproject.toml").read_text(encoding="utf-8"))
    names = document.get("tool", {}).get("tritonpy", {}).get("compiled", ())
    return [f"{name.replace('.', '/')}.py" for name in names]


def compile_all(distributions: Mapping[str, Distribution]) -> dict[str, dict[str, bytes]]:
    """Return the extension modules of each distribution that lists some, by name and path.

    Raises CompilationFailed.
    """
    check_compiler()
    wanted = [each for each in distributions.values() if compiled_modules(each)]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        results = threads.map(lambda each: compile_distribution(each, distributions), wanted)
        return {each.name: result for each, result in zip(wanted, results, strict=True)}


def check_compiler(command: str = "", headers: str = "") -> None:
    """Raise CompilationFailed if the C compiler or the headers of Python are missing.

    The defaults are those of this interpreter.
    """
    command = command or os.environ.get("CC") or sysconfig.get_config_var("CC")
    headers = headers or sysconfig.get_path("include")
    program = command.split(maxsplit=1)[0]
    if shutil.which(program) is None:
        raise CompilationFailed(f"there is no C compiler '{program}': apt install gcc python3-dev")
    if not Path(headers, "Python.h").exists():
        raise CompilationFailed(f"{headers} has no Python.h: apt install python3-dev")


def compile_distribution(
    distribution: Distribution, distributions: Mapping[str, Distribution]
) -> dict[str, bytes]:
    """Return the extension modules of a distribution by their path in the wheel.

    Raises CompilationFailed.
    """
    modules = compiled_modules(distribution)
    print(f"compiling {len(modules)} modules of {distribution.name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for package in distribution.folder.glob("tritonpy*"):
            if (package / "__init__.py").exists():
                shutil.copytree(package, Path(folder, package.name))
        roots = [folder, *(str(each.folder) for each in distributions.values())]
        roots.remove(str(distribution.folder))
        group = distribution.name.replace("-", "_")
        done = subprocess.run(
            [sys.executable, "-c", BUILD, group, *modules],
            cwd=folder,
            env={**os.environ, "MYPYPATH": os.pathsep.join(roots)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CompilationFailed(f"{distribution.name} cannot be compiled\n{done.stdout}")
        built = [each for each in Path(folder).rglob(f"*{SUFFIX}") if "build" not in each.parts]
        return {str(each.relative_to(folder)): each.read_bytes() for each in built}


def install(compiled: Mapping[str, Mapping[str, bytes]], environment: Path) -> None:
    """Copy extension modules into the environment, beside the sources of their modules.

    They become files of the installed distributions, so that pip removes them with these. Skips
    distributions that are not installed. Raises CompilationFailed for an editable installation,
    whose sources are not in the environment, and for a folder that is no environment.
    """
    site = next(environment.glob("lib/python*/site-packages"), None)
    if site is None:
        raise CompilationFailed(f"{environment} is not a virtual environment")
    for distribution, modules in compiled.items():
        record = next(site.glob(f"{distribution.replace('-', '_')}-*.dist-info/RECORD"), None)
        if record is None:
            continue
        if not all((site / name).parent.is_dir() for name in modules):
            raise CompilationFailed(f"{distribution} is installed in {environment} as a link")
        with record.open(newline="") as file:
            rows = [row for row in csv.reader(file) if row]
        for name, _, _ in rows:
            if name.endswith(SUFFIX):  # perhaps of a module that is not compiled any more
                (site / name).unlink(missing_ok=True)
        rows = [row for row in rows if not row[0].endswith(SUFFIX)]
        for name, content in modules.items():
            (site / name).write_bytes(content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            rows.append([name, f"sha256={digest.decode()}", str(len(content))])
        with record.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


def add_to_wheels(compiled: Mapping[str, Mapping[str, bytes]], wheels: Path) -> None:
    """Write a wheel for this Python and platform beside each wheel of a compiled distribution."""
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    for wheel in sorted(wheels.glob("tritonpy*-none-any.whl")):
        modules = compiled.get(requirement_name(wheel.name.partition("-")[0]))
        if modules is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            _wheel("unpack", "--dest", folder, str(wheel))
            content = next(Path(folder).iterdir())
            for name, extension in modules.items():
                (content / name).write_bytes(extension)
            description = next(content.glob("*.dist-info/WHEEL"))
            lines = [
                line
                for line in description.read_text().splitlines()
                if line and not line.startswith(("Tag:", "Root-Is-Purelib:"))
            ]
            lines += ["Root-Is-Purelib: false", f"Tag: {tag}-{tag}-{platform}", ""]
            description.write_text("\n".join(lines))
            _wheel("pack", "--dest-dir", str(wheels), str(content))


def _wheel(*arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "wheel", *arguments], check=True, stdout=subprocess.DEVNULL
    )


if __name__ == "__main__":
    sys.exit(main())
