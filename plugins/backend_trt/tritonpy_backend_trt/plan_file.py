"""Location and memory mapping of the plan file."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tritonpy import Internal, ModelContext, Unavailable
from tritonpy.config import resolve_model_file
from tritonpy_backend_trt.plan_header import HEADER_SIZE, plan_error

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

DEFAULT_FILENAME = "model.plan"


def plan_path(model: ModelContext, compute_capability: str, instance: str) -> Path:
    """Return the plan for a GPU of a compute capability such as 8.6.

    Raises `Unavailable` if the file does not exist.
    """
    path = resolve_model_file(
        _filename(model.config, compute_capability), model.path, model.directory
    )
    if not path.is_file():
        raise Unavailable(f"unable to find '{path}' for model instance '{instance}'")
    return path


def _filename(config: ModelConfig, compute_capability: str) -> str:
    return (
        config.cc_model_filenames.get(compute_capability, config.default_model_filename)
        or DEFAULT_FILENAME
    )


def header(path: Path) -> bytes:
    """Return the header of a plan file; raise `Internal` if the file is not a plan."""
    with path.open("rb") as file:
        first = file.read(HEADER_SIZE)
    problem = plan_error(first)
    if problem is not None:
        raise Internal(
            f"unable to create TensorRT engine: {path} is not a TensorRT plan: {problem}"
        )
    return first


@contextmanager
def map_plan(path: Path) -> Iterator[mmap.mmap]:
    """Yield the plan as mapped memory that is read on demand; it may be as large as host memory."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data
