"""A model in the library: its backend, its configuration, and the memory that it reports."""

from __future__ import annotations

import ctypes
import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tritonpy import InvalidArgument, MemoryUsage, ModelContext
from tritonpy.config import config_to_dict
from tritonpy_backend_c.alias import provide_names
from tritonpy_backend_c.elf import read_library
from tritonpy_backend_c.host import host
from tritonpy_backend_c.library import check
from tritonpy_backend_c.options import CBackendOptions

log = logging.getLogger("tritonpy.backend")

MEMORY_TYPES = ("CPU", "CPU_PINNED", "GPU")
_MOST_USAGES = 64
_MOST_GROUP_WORDS = 4096  # a list that is longer is ignored
_backends: dict[tuple[str, str, str], int] = {}  # by name, path and settings
_opening = threading.Lock()


class PreferredGroup(msgspec.Struct):
    """An instance group that a backend prefers; `kind` is a `TRITONSERVER_InstanceGroupKind`."""

    kind: int
    count: int
    gpus: list[int]


class CModel:
    """One version of a model. Creating it calls `TRITONBACKEND_ModelInitialize`.

    A backend is opened with its first model, for all models with its settings. It is never closed:
    frameworks leave threads behind. With `completes` the backend may change the configuration.
    """

    def __init__(self, model: ModelContext, completes: bool) -> None:
        self.library = host().library
        self.number = host().add_model(model)
        self._handle = ctypes.c_void_p()
        try:
            backend = _open_backend(self.library, model, self.number)
            config = model.config
            states = [state.output_name for state in config.sequence_batching.state]
            check(
                self.library,
                self.library.model_open(
                    backend,
                    model.name.encode(),
                    model.version,
                    str(model.directory).encode(),
                    msgspec.json.encode(config_to_dict(config)),
                    "\n".join(states).encode(),
                    completes,
                    config.HasField("sequence_batching"),
                    self.number,
                    ctypes.byref(self._handle),
                ),
            )
        except BaseException:
            host().remove_model(self.number)
            raise

    @property
    def handle(self) -> ctypes.c_void_p:
        """The library's object, for instances."""
        return self._handle

    def changed_config(self) -> str | None:
        """Return the configuration that the backend set, as JSON, or None."""
        text = self.library.model_config(self._handle)
        return None if text is None else text.decode()

    def use_context(self, model: ModelContext) -> None:
        """Replace the context after the completion: its configuration and its metrics."""
        text = msgspec.json.encode(config_to_dict(model.config))
        self.library.model_set_config(self._handle, text)
        host().replace_model(self.number, model)

    def memory_usage(self) -> list[MemoryUsage]:
        """Return the memory that the backend reported for the model."""
        return read_usage(self.library.model_usage, self._handle)

    def close(self) -> None:
        """Call `TRITONBACKEND_ModelFinalize`; an error is logged."""
        try:
            check(self.library, self.library.model_close(self._handle))
        except Exception as error:
            log.error("a model failed to close: %s", error)
        host().remove_model(self.number)


def preferred_groups(model: ModelContext) -> list[PreferredGroup]:
    """Open the backend of a model, and return the instance groups that it prefers, best first."""
    library, number = host().library, host().add_model(model)
    try:
        backend = _open_backend(library, model, number)
    finally:
        host().remove_model(number)
    words = np.zeros(_MOST_GROUP_WORDS, np.int64)
    library.backend_groups(backend, words.ctypes.data, len(words))
    values = iter(words.tolist())
    return [
        PreferredGroup(next(values), next(values), [next(values) for _ in range(next(values))])
        for _ in range(next(values))
    ]


def read_usage(function: Any, handle: ctypes.c_void_p) -> list[MemoryUsage]:
    """Return what a function of the library reports: memory type, device and bytes."""
    words = np.zeros(3 * _MOST_USAGES, np.int64)
    count = function(handle, words.ctypes.data, _MOST_USAGES)
    rows: Sequence[Sequence[int]] = words[: 3 * count].reshape(count, 3).tolist()
    return [MemoryUsage(MEMORY_TYPES[kind], device, size) for kind, device, size in rows]


def find_library(model: ModelContext) -> Path:
    """Return the path of the library that serves the model, searched as Triton does.

    It is in the folder of the version, of the model, or of the backend. Raises `InvalidArgument`
    with Triton's text if it does not exist or leaves its folder.
    """
    backend = model.config.backend
    name = model.config.runtime or f"libtriton_{backend}.so"
    folders = [model.path, model.directory]
    if model.backend_directory is not None:
        folders.append(model.backend_directory)
    for folder in folders:
        path = folder / name
        if not path.is_file():
            continue
        if not path.resolve().is_relative_to(folder.resolve()):
            raise InvalidArgument(
                f"backend library name '{name}' escapes backend directory '{folder}', for model "
                f"'{model.name}', check model config runtime field"
            )
        return path
    searched = " ".join(f"'{folder}'" for folder in folders)
    raise InvalidArgument(
        f"unable to find backend library '{name}' for model '{model.name}', searched: {searched} "
    )


def _open_backend(library: Any, model: ModelContext, number: int) -> int:
    path = find_library(model)
    name, settings = model.config.backend, _settings(model)
    key = name, str(path.resolve()), settings
    with _opening:
        opened = _backends.get(key)
        if opened is None:
            provide_names(read_library(path))
            handle = ctypes.c_void_p()
            check(
                library,
                library.backend_open(
                    name.encode(), str(path).encode(), str(path.parent).encode(),
                    settings.encode(), number, ctypes.byref(handle),
                ),
            )  # fmt: skip
            assert handle.value is not None, "a backend without a handle: this is a bug"  # noqa: S101
            opened = _backends[key] = handle.value
    return opened


def _settings(model: ModelContext) -> str:
    """Return the backend's command-line settings as Triton passes them, all of them texts."""
    options = model.options
    given = dict(options.settings) if isinstance(options, CBackendOptions) else {}
    directory = model.backend_directory
    root = str(Path(directory).parent) if directory is not None else "/opt/tritonserver/backends"
    cmdline = {
        "auto-complete-config": "true",
        "backend-directory": root,
        "min-compute-capability": "6.000000",
        "default-max-batch-size": str(model.default_max_batch_size),
    }
    own = {key: text for key, text in given.items() if key != "default_max_batch_size"}
    return msgspec.json.encode({"cmdline": cmdline | own}).decode()
