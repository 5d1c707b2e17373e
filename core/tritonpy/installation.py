"""The origin of this tritonpy installation, and the command that installs packages next to it."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

INSTALLER = "tools/install.py"
IMAGE_VARIABLE = "TRITONPY_IMAGE"  # set in images, which have no pip


def install_command(requirement: str, *, reinstall: bool = False) -> str:
    """Return the shell command that installs `requirement`, such as `tritonpy-repo-cloud[s3]`.

    If this environment was created from a source checkout, the command runs the checkout's
    installer, which installs into this environment without a package index. If it was installed
    from wheels in a folder, the command names that folder. In an image, it builds another image.
    """
    if IMAGE_VARIABLE in os.environ:
        build = ["docker", "build", "--file", "deploy/docker/Dockerfile", "--build-arg"]
        return shlex.join([*build, f"PLUGINS={requirement}", "."])
    options = ["--force-reinstall"] if reinstall else []
    origin = _origin()
    if origin is not None and origin.suffix == ".whl" and origin.parent.is_dir():
        options += ["--find-links", str(origin.parent)]
    elif origin is not None and _is_in_checkout(requirement, origin.parent):
        return shlex.join(
            [
                _relative(Path(sys.executable)),
                _relative(origin.parent / INSTALLER),
                *options,
                requirement,
            ]
        )
    return shlex.join(["pip", "install", *options, requirement])


def _relative(path: Path) -> str:
    """Return `path` relative to the current folder if it is inside it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):  # OSError: the current folder was deleted
        return str(path)


def _origin() -> Path | None:
    """Return the local folder or wheel that the core was installed from; None if from an index."""
    import importlib.metadata  # only needed for a hint

    try:
        text = importlib.metadata.distribution("tritonpy").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:  # run from source, not installed
        return None
    url = urlsplit(json.loads(text)["url"]) if text else None
    return Path(unquote(url.path)) if url is not None and url.scheme == "file" else None


def _is_in_checkout(requirement: str, checkout: Path) -> bool:
    name = re.split(r"[\[<>=~! ]", requirement, maxsplit=1)[0]
    folder = "core" if name == "tritonpy" else name.removeprefix("tritonpy-").replace("-", "_")
    projects = (checkout / group / folder / "pyproject.toml" for group in (".", "plugins", "libs"))
    return (checkout / INSTALLER).is_file() and any(project.is_file() for project in projects)
