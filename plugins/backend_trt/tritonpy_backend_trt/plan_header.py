"""Pure checks of a plan's header, which explain invalid files even without a GPU."""

from __future__ import annotations

from typing import NamedTuple

HEADER_SIZE = 28
_TAG = b"ftrt"
_KNOWN_LAYOUT = 0  # the number after the tag; other layouts may store the version elsewhere
_FOREIGN_FILES = {
    b"\x08": (
        "it looks like an ONNX model: build a plan from it (trtexec --onnx=… "
        "--saveEngine=model.plan), or serve it with backend 'onnxruntime'"
    ),
    b"PK\x03\x04": "it is a ZIP archive, such as a PyTorch model",
    b"ptrt": "it was built with an obsolete TensorRT version: build it again",
    b"version https://git-lfs": "it is a Git LFS pointer: fetch the plan with git lfs pull",
}


class Version(NamedTuple):
    """A TensorRT version."""

    major: int
    minor: int
    patch: int
    build: int

    def __str__(self) -> str:
        return ".".join(map(str, self))


def plan_error(header: bytes) -> str | None:
    """Return why a file with this header is not a plan, or None if it may be one."""
    for start, meaning in _FOREIGN_FILES.items():
        if header.startswith(start):
            return meaning
    if not _TAG.startswith(header[: len(_TAG)]):
        return f"it begins with {header[:4]!r}, but a TensorRT plan begins with {_TAG!r}"
    if len(header) < HEADER_SIZE:
        return f"it is truncated: {len(header)} bytes are less than the header of a plan"
    return None


def plan_version(header: bytes) -> Version | None:
    """Return the version that built the plan, or None if the layout is unknown."""
    if int.from_bytes(header[4:8], "little") != _KNOWN_LAYOUT:
        return None
    return Version(*header[24:HEADER_SIZE])


def version_hint(built_with: Version | None, runtime: str, version_compatible: bool) -> str:
    """Return advice for a plan that TensorRT version `runtime` could not load.

    Empty if the versions are not the reason.
    """
    if built_with is None or _numbers(runtime) == built_with[:3]:
        return ""
    remedy = (
        "build the plan again with the installed version, or install TensorRT "
        f"{built_with.major}.{built_with.minor}.{built_with.patch}"
    )
    if not version_compatible:
        remedy += (
            "; a version-compatible plan (trtexec --versionCompatible) also needs the backend "
            "option"
            " 'version-compatible', only for trusted models: it contains code that runs in the "
            "server"
        )
    return f"; the plan was built with TensorRT {built_with}, but {runtime} is installed: {remedy}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdecimal())
