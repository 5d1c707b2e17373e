"""Finds the plan of a model and maps it into memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tritonpy import Internal, ModelContext, Unavailable, resolve_model_file
from tritonpy_backend_trt.plan import HEADER_BYTES, flaw_of

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

DEFAULT_FILENAME = "model.plan"


def plan_path(model: ModelContext, capability: str, instance: str) -> Path:
    """Return the plan for a GPU of a compute capability, such as 8.6; raises Unavailable where it is not there."""
    path = resolve_model_file(_filename(model.config, capability), model.path, model.directory)
    if not path.is_file():
        raise Unavailable(f"unable to find '{path}' for model instance '{instance}'")
    return path


def _filename(config: ModelConfig, capability: str) -> str:
    return config.cc_model_filenames.get(capability, config.default_model_filename) or DEFAULT_FILENAME


def beginning(path: Path) -> bytes:
    """Return what a plan begins with; raises Internal for a file that is none."""
    with path.open("rb") as file:
        first = file.read(HEADER_BYTES)
    flaw = flaw_of(first)
    if flaw is not None:
        raise Internal(f"unable to create TensorRT engine: {path} is not a TensorRT plan: {flaw}")
    return first


@contextmanager
def mapped(path: Path) -> Iterator[mmap.mmap]:
    """Yield the plan as memory that is read when TensorRT wants it: engines may be as large as the host's memory."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data
