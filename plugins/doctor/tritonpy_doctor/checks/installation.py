"""Checks of Python, packages and plugins."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys
import time
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement

from tritonpy import __version__
from tritonpy.plugins import PluginError, install_command, make_plugin_manager
from tritonpy.server import is_compiled
from tritonpy_checks import CheckResult, CheckStatus, DoctorCheck, DoctorContext
from tritonpy_config.known_backends import KNOWN_FORMATS, package_of

OLDEST = (3, 11)
SLOW_START_S = 2.0
_TIMEOUT_S = 4.0
_START = "import tritonpy.cli, tritonpy.server; tritonpy.cli.make_plugin_manager()"


class PythonVersion(DoctorCheck):
    """The interpreter and its environment."""

    title = "Python"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield version and environment."""
        version = platform.python_version()
        if sys.version_info < OLDEST:
            yield CheckResult(
                CheckStatus.FAIL, f"Python {version} is too old", "Install Python 3.11 or newer."
            )
        elif sys.maxsize <= 2**32:
            yield CheckResult(
                CheckStatus.FAIL, "Python has 32 bits", "Install a 64-bit build of Python."
            )
        else:
            yield CheckResult(CheckStatus.OK, f"Python {version}, {sys.executable}")
        if sys.prefix == sys.base_prefix:
            yield CheckResult(
                CheckStatus.WARN,
                "Python runs outside a virtual environment: packages of the system may interfere",
                "Create one: python3 -m venv .venv",
            )


class PackageVersions(DoctorCheck):
    """Installed packages against the requirements of tritonpy and its plugins."""

    title = "Packages"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield a result per requirement that is not met, else one for all."""
        own = sorted(
            {
                name.lower()
                for each in importlib.metadata.distributions()
                if (name := each.metadata["Name"]) and name.lower().startswith("tritonpy")
            }
        )
        count = 0
        for name in own:
            for problem in _unmet(name):
                count += 1
                yield problem
        if not count:
            yield CheckResult(CheckStatus.OK, f"the requirements of {len(own)} packages are met")


def _unmet(name: str) -> Iterator[CheckResult]:
    for text in importlib.metadata.requires(name) or ():
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            yield CheckResult(
                CheckStatus.FAIL,
                f"{name} needs {requirement.name}, which is not installed",
                install_command(requirement.name),
            )
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            wanted = f"{requirement.name}{requirement.specifier}"
            yield CheckResult(
                CheckStatus.FAIL,
                f"{name} needs {wanted}, version {version} is installed",
                f"pip install '{wanted}'",
            )


class PluginImports(DoctorCheck):
    """Every class that a plugin registers."""

    title = "Plugins"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield the plugins, and a failure per class that cannot be imported."""
        try:
            manager = make_plugin_manager(disable=context.config.plugins.disable)
        except PluginError as error:
            yield CheckResult(CheckStatus.FAIL, str(error), "Reinstall or disable the plugin.")
            return
        found = manager.plugins()
        form = "compiled" if is_compiled() else "interpreted"
        yield CheckResult(
            CheckStatus.OK,
            f"tritonpy {__version__} (request path: {form}), {len(found)} plugins",
            "tritonpy plugins lists them",
        )
        for each in found:
            if each.distribution.startswith("tritonpy-") and each.version != __version__:
                yield CheckResult(
                    CheckStatus.WARN,
                    f"{each.distribution} {each.version} is from another release",
                    install_command(each.distribution, reinstall=True),
                )
        for each in found:
            for hook, registered in each.hooks.items():
                for name in registered:
                    try:
                        manager.table(hook)[name].load()
                    except PluginError as error:
                        yield CheckResult(
                            CheckStatus.FAIL,
                            str(error),
                            install_command(each.distribution, reinstall=True),
                        )


class MissingBackends(DoctorCheck):
    """Backends of Triton that are not installed."""

    title = "Backends"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield the installed backends, and the command for each other one."""
        manager = make_plugin_manager(disable=context.config.plugins.disable)
        installed = sorted(manager.table("tritonpy_backends"))
        if installed:
            yield CheckResult(CheckStatus.OK, f"installed: {', '.join(installed)}")
        else:
            yield CheckResult(
                CheckStatus.FAIL,
                "no backend is installed: only ensembles could be served",
                install_command("tritonpy-backend-onnx"),
            )
        for name in sorted({form.backend for form in KNOWN_FORMATS} - set(installed)):
            package = package_of(name)
            if package is not None:
                yield CheckResult(
                    CheckStatus.OK,
                    f"not installed: {name}",
                    f"to add it: {install_command(package)}",
                )


class StartTime(DoctorCheck):
    """The time to import the server and to find the plugins."""

    title = "Start"

    def run(self, context: DoctorContext) -> Iterator[CheckResult]:
        """Yield the time of a fresh process."""
        start = time.monotonic()
        try:
            subprocess.run(
                [sys.executable, "-c", _START], check=True, capture_output=True, timeout=_TIMEOUT_S
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            output = (error.stderr or b"").decode(errors="replace").strip()
            yield CheckResult(
                CheckStatus.FAIL,
                f"the server cannot be imported: {output.rpartition(chr(10))[2] or error}",
                install_command("tritonpy", reinstall=True),
            )
            return
        seconds = time.monotonic() - start
        text = f"importing the server and finding the plugins takes {seconds:.2f} s"
        if seconds > SLOW_START_S:
            yield CheckResult(
                CheckStatus.WARN, text, "Install into a local disk; check the load of the machine."
            )
        else:
            yield CheckResult(CheckStatus.OK, text)
