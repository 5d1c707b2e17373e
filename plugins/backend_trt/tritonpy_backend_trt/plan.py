"""What a plan begins with: enough to say what is wrong with a file, on machines without a GPU too. Pure."""

from __future__ import annotations

from typing import NamedTuple

HEADER_BYTES = 28
_TAG = b"ftrt"
_KNOWN_LAYOUT = 0  # the number behind the tag; another may keep the version elsewhere
_OTHERS = {
    b"\x08": "it looks like an ONNX model: build a plan of it (trtexec --onnx=… --saveEngine=model.plan), or serve it with backend 'onnxruntime'",
    b"PK\x03\x04": "it is a ZIP archive, as PyTorch writes them",
    b"ptrt": "it comes from a version of TensorRT that nothing supports any more: build it again",
    b"version https://git-lfs": "it is a pointer of Git LFS, the plan itself was not fetched (git lfs pull)",
}


class Version(NamedTuple):
    """A version of TensorRT."""

    major: int
    minor: int
    patch: int
    build: int

    def __str__(self) -> str:
        return ".".join(map(str, self))


def flaw_of(beginning: bytes) -> str | None:
    """Return why a file with these first bytes is no plan, None where it may be one."""
    for start, meaning in _OTHERS.items():
        if beginning.startswith(start):
            return meaning
    if not _TAG.startswith(beginning[: len(_TAG)]):
        return f"it begins with {beginning[:4]!r} and a TensorRT plan with {_TAG!r}"
    if len(beginning) < HEADER_BYTES:
        return f"it is truncated: {len(beginning)} bytes are less than what a plan begins with"
    return None


def version_of(beginning: bytes) -> Version | None:
    """Return the version that built the plan, None where its layout is unknown."""
    if int.from_bytes(beginning[4:8], "little") != _KNOWN_LAYOUT:
        return None
    return Version(*beginning[24:HEADER_BYTES])


def advice(built_with: Version | None, runtime: str, version_compatible: bool) -> str:
    """Return what to do about a plan that `runtime` (its version) could not read, empty where the versions are not the reason."""
    if built_with is None or _numbers(runtime) == built_with[:3]:
        return ""
    remedy = (
        f"build the plan again with it, or install TensorRT {built_with.major}.{built_with.minor}.{built_with.patch}"
    )
    if not version_compatible:
        remedy += (
            "; a plan that was built version-compatible (trtexec --versionCompatible) also needs the option"
            " 'version-compatible' of the backend, and your trust: it brings code that is run"
        )
    return f"; the plan was built with TensorRT {built_with}, installed is {runtime}: {remedy}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdecimal())
