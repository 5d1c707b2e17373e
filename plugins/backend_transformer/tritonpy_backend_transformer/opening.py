"""Opens a model in CTranslate2, on the devices that it runs on."""

from __future__ import annotations

import ctypes
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonpy import InvalidArgument, Unavailable
from tritonpy_backend_transformer.folder import Kind, ModelFolder
from tritonpy_backend_transformer.runtime import runtime
from tritonpy_backend_transformer.settings import Settings, check_precision


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model runs: `cpu`, `cuda` or `auto`, and which devices of that kind."""

    device: str
    indexes: tuple[int, ...]


def open_model(folder: ModelFolder, wanted: Settings, place: Place, parallel: int, threads: int) -> Any:
    """Return the library's object for a model; raises a TritonError with what the library says where that fails."""
    ctranslate2 = runtime()
    if place.device != "cpu":
        _preload_cuda()
    _check_device(ctranslate2, place)
    for index in place.indexes:
        possible = ctranslate2.get_supported_compute_types(place.device, index)
        check_precision(wanted.compute_type, possible, f"this {_device_name(place)}")
    classes = {
        Kind.DECODER: ctranslate2.Generator,
        Kind.ENCODER_DECODER: ctranslate2.Translator,
        Kind.ENCODER: ctranslate2.Encoder,
    }
    try:
        return classes[folder.kind](
            str(folder.path), place.device,
            device_index=list(place.indexes) if len(place.indexes) > 1 else place.indexes[0],
            compute_type=wanted.compute_type, inter_threads=parallel, intra_threads=threads,
            max_queued_batches=-1, flash_attention=wanted.flash_attention,
        )  # fmt: skip
    except (RuntimeError, ValueError) as error:
        raise InvalidArgument(f"CTranslate2 cannot load '{folder.path}': {error}") from error


def _check_device(ctranslate2: Any, place: Place) -> None:
    if place.device != "cuda":
        return
    count = ctranslate2.get_cuda_device_count()
    if max(place.indexes) >= count:
        raise Unavailable(
            f"CTranslate2 sees {count} NVIDIA GPUs, the model wants number {max(place.indexes)}: the driver, or cuBLAS"
            " (pip install nvidia-cublas-cu12), may be missing"
        )


def _device_name(place: Place) -> str:
    return "CPU" if place.device == "cpu" else "GPU"


def _preload_cuda() -> None:
    """Load cuBLAS and cuDNN from their Python packages, where those are installed: the library looks on the system alone."""
    for package, pattern in (("nvidia.cublas", "libcublas*.so.12"), ("nvidia.cudnn", "libcudnn*.so.*")):
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        for folder in (spec.submodule_search_locations if spec is not None else None) or ():
            for library in sorted(Path(folder, "lib").glob(pattern), reverse=True):
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def has_cuda() -> bool:
    """Say whether cuBLAS, without which the library computes on no GPU, is installed as a Python package; nothing is imported."""
    return importlib.util.find_spec("nvidia") is not None and _has_package("nvidia.cublas")


def _has_package(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
