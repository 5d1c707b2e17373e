"""CTranslate2 models on their devices."""

from __future__ import annotations

import ctypes
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonpy import InvalidArgument, Unavailable
from tritonpy_backend_transformer.model_folder import FolderKind, ModelFolder
from tritonpy_backend_transformer.runtime import runtime
from tritonpy_backend_transformer.settings import Settings, check_precision


@dataclass(frozen=True, slots=True)
class DeviceSet:
    """The devices of a model: a type (`cpu`, `cuda` or `auto`) and the indexes of the devices."""

    device: str
    indexes: tuple[int, ...]


def open_model(
    folder: ModelFolder, settings: Settings, device_set: DeviceSet, lane_count: int, threads: int
) -> Any:
    """Return the CTranslate2 model.

    Raises a `TritonError` with CTranslate2's text if it cannot be opened.
    """
    ctranslate2 = runtime()
    if device_set.device != "cpu":
        _preload_cuda()
    _check_device(ctranslate2, device_set)
    for index in device_set.indexes:
        possible = ctranslate2.get_supported_compute_types(device_set.device, index)
        check_precision(settings.compute_type, possible, f"this {_device_name(device_set)}")
    classes = {
        FolderKind.DECODER: ctranslate2.Generator,
        FolderKind.ENCODER_DECODER: ctranslate2.Translator,
        FolderKind.ENCODER: ctranslate2.Encoder,
    }
    try:
        return classes[folder.kind](
            str(folder.path), device_set.device,
            device_index=(
                list(device_set.indexes)
                if len(device_set.indexes) > 1
                else device_set.indexes[0]
            ),
            compute_type=settings.compute_type, inter_threads=lane_count, intra_threads=threads,
            max_queued_batches=-1, flash_attention=settings.flash_attention,
        )  # fmt: skip
    except (RuntimeError, ValueError) as error:
        raise InvalidArgument(f"CTranslate2 cannot load '{folder.path}': {error}") from error


def _check_device(ctranslate2: Any, device_set: DeviceSet) -> None:
    if device_set.device != "cuda":
        return
    count = ctranslate2.get_cuda_device_count()
    if max(device_set.indexes) >= count:
        raise Unavailable(
            f"CTranslate2 finds {count} NVIDIA GPUs, the model needs GPU "
            f"{max(device_set.indexes)}: the driver or cuBLAS"
            " (pip install nvidia-cublas-cu12) may be missing"
        )


def _device_name(device_set: DeviceSet) -> str:
    return "CPU" if device_set.device == "cpu" else "GPU"


def _preload_cuda() -> None:
    """Load cuBLAS and cuDNN from Python packages: CTranslate2 only searches the system."""
    for package, pattern in (
        ("nvidia.cublas", "libcublas*.so.12"),
        ("nvidia.cudnn", "libcudnn*.so.*"),
    ):
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        for folder in (spec.submodule_search_locations if spec is not None else None) or ():
            for library in sorted(Path(folder, "lib").glob(pattern), reverse=True):
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def has_cuda() -> bool:
    """Return true if cuBLAS is installed as a Python package.

    CTranslate2 needs it to compute on a GPU.
    """
    return importlib.util.find_spec("nvidia") is not None and _has_package("nvidia.cublas")


def _has_package(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
