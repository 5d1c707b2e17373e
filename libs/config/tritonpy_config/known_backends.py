"""The file names and platforms of Triton's backends and of llama.cpp's, installed or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ENSEMBLE_PLATFORM = "ensemble"
TENSORRT_PLATFORM = "tensorrt_plan"
MIN_COMPUTE_CAPABILITY = 7.5
"""The lowest compute capability of a GPU that models may use, unless the server sets another."""


@dataclass(frozen=True, slots=True)
class BackendFiles:
    """Name, platforms and default file names of an installed backend, the preferred ones first.

    They are the class attributes of `Backend`.
    """

    name: str
    platforms: Sequence[str] = ()
    default_filenames: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ModelFormat:
    """One kind of model: `filename` is a file or a folder in the version's folder.

    `is_folder` is None if both are allowed.
    """

    backend: str
    platform: str
    filename: str
    is_folder: bool | None = None


# In the order of Triton's search; the first format of a backend is its default.
KNOWN_FORMATS: tuple[ModelFormat, ...] = (
    ModelFormat("tensorflow", "tensorflow_savedmodel", "model.savedmodel", is_folder=True),
    ModelFormat("tensorflow", "tensorflow_graphdef", "model.graphdef", is_folder=False),
    ModelFormat("tensorrt", TENSORRT_PLATFORM, "model.plan", is_folder=False),
    ModelFormat("onnxruntime", "onnxruntime_onnx", "model.onnx"),
    ModelFormat("openvino", "", "model.xml"),
    ModelFormat("pytorch", "pytorch_libtorch", "model.pt", is_folder=False),
    ModelFormat("pytorch", "torch_aoti", "model.pt2", is_folder=False),
    ModelFormat("pytorch", "libtorch", "model.pt", is_folder=False),
    ModelFormat("python", "", "model.py"),
    ModelFormat("llamacpp", "", "model.gguf"),
)

_PACKAGES = {
    "tensorflow": "tritonpy-backend-tf",
    "tensorrt": "tritonpy-backend-trt",
    "onnxruntime": "tritonpy-backend-onnx",
    "openvino": "tritonpy-backend-openvino",
    "pytorch": "tritonpy-backend-torch",
    "python": "tritonpy-backend-python",
    "transformer": "tritonpy-backend-transformer",
    "vllm": "tritonpy-backend-vllm",
    "llamacpp": "tritonpy-backend-llamacpp",
    "c": "tritonpy-backend-c",
}


def package_of(backend: str) -> str | None:
    """Return the distribution of a backend of this project, or None for another backend."""
    return _PACKAGES.get(backend)


def platforms_of(backend: str) -> tuple[str, ...]:
    """Return the platforms that one of Triton's backends allows; empty if it allows any."""
    return tuple(
        dict.fromkeys(
            form.platform for form in KNOWN_FORMATS if form.backend == backend and form.platform
        )
    )


def formats(installed: Sequence[BackendFiles]) -> list[ModelFormat]:
    """Return every known format, followed by those of the installed backends, in their order."""
    found = list(KNOWN_FORMATS)
    seen = {(form.backend, form.filename) for form in found}
    for backend in installed:
        platform = backend.platforms[0] if backend.platforms else ""
        found.extend(
            ModelFormat(backend.name, platform, filename)
            for filename in backend.default_filenames
            if (backend.name, filename) not in seen
        )
        found.extend(
            ModelFormat(backend.name, other, "") for other in backend.platforms if other != platform
        )
        if platform and not backend.default_filenames:
            found.append(ModelFormat(backend.name, platform, ""))
    return found
