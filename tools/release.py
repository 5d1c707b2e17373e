"""Build the wheels of a release and check them: `python3 tools/release.py`.

Every distribution becomes a wheel in dist/. Wheels require their siblings in exactly this version
and do not refer to the checkout. They are installed into an empty environment, with other
dependencies from the package index, and a server from these wheels must respond to a request.
Distributions that need a large framework are resolved but not installed, unless --frameworks is
given. Beside the wheels are the bill of materials of that environment (sbom.cdx.json, in the format
of CycloneDX) and the changes of the release (CHANGELOG.md). With --compiled, distributions with
compiled modules get a second wheel for this version of Python and this platform, which pip prefers
where it fits (see tools/compiler.py).
"""

from __future__ import annotations

import argparse
import email
import email.message
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from distributions import (
    ROOT,
    Distribution,
    read_distributions,
    requirement_name,
    run_build,
    run_compiler,
    run_pip,
)

FRAMEWORKS = {
    "tritonpy-backend-openvino",
    "tritonpy-backend-tf",
    "tritonpy-backend-torch",
    "tritonpy-backend-transformer",
    "tritonpy-backend-trt",
}
BILL_OF_MATERIALS = "cyclonedx-bom>=7,<8"
REQUIRED = ("Summary", "Author", "Keywords", "Classifier", "Requires-Python")
# Serves an example model with the installed wheels and sends it a request over HTTP.
SMOKE_TEST = """
import json, sys, urllib.request
from tritonpy import running_server
frontends = {name: {"port": 0} for name in ("http", "grpc", "metrics")}
with running_server({"repositories": [{"url": sys.argv[1]}], "frontends": frontends}) as server:
    url = f"http://{server.address('http')}/v2/models/digits/infer"
    request = urllib.request.Request(url, open(sys.argv[2], "rb").read())
    answer = json.load(urllib.request.urlopen(request, timeout=60))
assert answer["model_name"] == "digits", answer
"""


class BadWheel(Exception):
    """A wheel that must not be released."""


def main(argv: Sequence[str] | None = None) -> int:
    """Build and check the wheels; return the exit status."""
    summary, _, details = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=details)
    parser.add_argument(
        "--frameworks",
        action="store_true",
        help="also install the distributions with large frameworks",
    )
    parser.add_argument(
        "--compiled", action="store_true", help="also build wheels with compiled modules"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "dist",
        help="the folder of the wheels (default: dist)",
    )
    arguments = parser.parse_args(argv)
    distributions = read_distributions()
    try:
        with tempfile.TemporaryDirectory() as folder:
            environment = Path(folder) / "environment"
            venv.create(environment, with_pip=True)
            python = environment / (
                "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
            )
            wheels = build(python, distributions, arguments.output)
            for name, wheel in wheels.items():
                check_metadata(read_metadata(wheel), distributions[name], distributions)
            check_installation(python, wheels, frameworks=arguments.frameworks)
            write_bill(python, Path(folder) / "bill", arguments.output / "sbom.cdx.json")
            write_changes(next(iter(distributions.values())).version, arguments.output)
            if arguments.compiled:
                output = arguments.output
                run_compiler(python, Path(folder) / "compiler", ["--wheels", str(output)])
                pure = {*wheels.values()}
                check_compiled(python, [each for each in output.glob("*.whl") if each not in pure])
    except (BadWheel, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{len(list(arguments.output.glob('*.whl')))} wheels in {arguments.output}")
    return 0


def build(python: Path, distributions: Mapping[str, Distribution], output: Path) -> dict[str, Path]:
    """Build and return a wheel of each distribution; remove old wheels in `output`."""
    versions = {each.version for each in distributions.values()}
    if len(versions) != 1:
        raise BadWheel(f"the distributions have different versions: {', '.join(sorted(versions))}")
    output.mkdir(parents=True, exist_ok=True)
    for old in output.glob("tritonpy*.whl"):
        old.unlink()
    folders = [str(each.folder) for each in distributions.values()]
    run_build(
        python, python.parent.parent / "build-backend", ["wheel", "-q", "-w", str(output), *folders]
    )
    return {
        requirement_name(path.name.partition("-")[0]): path
        for path in sorted(output.glob("tritonpy*.whl"))
    }


def read_metadata(wheel: Path) -> email.message.Message:
    """Return the METADATA of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def check_metadata(
    metadata: email.message.Message,
    distribution: Distribution,
    distributions: Mapping[str, Distribution],
) -> None:
    """Raise BadWheel for a wheel that needs the checkout or lacks a metadata field."""
    missing = [field for field in REQUIRED if not metadata[field]]
    if missing:
        raise BadWheel(f"{distribution.name} has no {', '.join(missing)}")
    for requirement in metadata.get_all("Requires-Dist") or ():
        sibling = distributions.get(requirement_name(requirement))
        text = requirement.partition(";")[0].strip()
        if " @ " in requirement:
            raise BadWheel(f"{distribution.name} refers to a location: {requirement}")
        if sibling is not None and not text.endswith(f"=={sibling.version}"):
            raise BadWheel(
                f"{distribution.name} must require {sibling.name}=={sibling.version}, not: "
                f"{requirement}"
            )


def check_installation(python: Path, wheels: Mapping[str, Path], *, frameworks: bool) -> None:
    """Install the wheels into the empty environment of `python` and serve a model with them."""
    light = [str(path) for name, path in wheels.items() if name not in FRAMEWORKS]
    large = [str(wheels[name]) for name in sorted(FRAMEWORKS & wheels.keys())]
    run_pip(python, ["install", "-q", *light, *(large if frameworks else ())])
    run_pip(python, ["check"])
    for wheel in () if frameworks else large:
        run_pip(python, ["install", "-q", "--dry-run", wheel])
    check_service(python)


def write_bill(python: Path, environment: Path, output: Path) -> None:
    """Write the bill of materials of an environment, with the version of each distribution."""
    venv.create(environment, with_pip=True)
    own = environment / "bin" / "python"
    run_pip(own, ["install", "-q", BILL_OF_MATERIALS])
    command = [str(own.with_name("cyclonedx-py")), "environment", "--output-reproducible"]
    project = str(ROOT / "core" / "pyproject.toml")
    subprocess.run(
        [*command, "--pyproject", project, "--output-file", str(output), str(python)], check=True
    )


def write_changes(version: str, output: Path) -> None:
    """Write the section of CHANGELOG.md for a version, or else the unreleased one.

    Raises BadWheel if there is neither.
    """
    sections = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:]
    titles = [section.partition("\n")[0].strip("[] ") for section in sections]
    for wanted in (version, "Unreleased"):
        for title, section in zip(titles, sections, strict=True):
            if title.startswith(wanted):
                changes = section.partition("\n")[2].strip()
                text = f"# tritonpy {version}\n\n{changes}\n"
                (output / "CHANGELOG.md").write_text(text, encoding="utf-8")
                return
    raise BadWheel(f"CHANGELOG.md has no section for {version}")


def check_compiled(python: Path, wheels: Sequence[Path]) -> None:
    """Install the compiled wheels over the others and serve a model with them."""
    run_pip(python, ["install", "-q", "--no-deps", "--force-reinstall", *map(str, wheels)])
    check_service(python)


def check_service(python: Path) -> None:
    """Serve a model with the installed wheels. Raises subprocess.CalledProcessError."""
    examples = ROOT / "examples"
    command = [
        str(python),
        "-I",
        "-c",
        SMOKE_TEST,
        str(examples / "models"),
        str(examples / "digit.json"),
    ]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main())
