"""What a worker asks of the server's other models: to be loaded, to be unloaded, whether they serve."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable
from functools import partial

import msgspec

from tritonpy.api.engine import Engine
from tritonpy.errors import InvalidArgument, NotFound
from tritonpy.ipc import ProtocolError
from tritonpy.runners.workers.off_loop import on_a_thread
from tritonpy.runners.workers.said import Int64


class LoadSaid(msgspec.Struct):
    """A model to load or reload; `files` are in base64."""

    name: str
    config: str = ""
    files: dict[str, str] = {}


class UnloadSaid(msgspec.Struct):
    """A model to unload."""

    name: str
    unload_dependents: bool = False


class ReadySaid(msgspec.Struct):
    """A model that may serve, in a version or in any (-1)."""

    name: str
    version: Int64 = -1


class ModelControl:
    """Raises the engine's errors, in its words: what Triton puts before them is said by the worker."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def load(self, said: LoadSaid) -> Awaitable[None]:
        """Load or reload; returns when the model serves."""
        try:
            files = {path: base64.b64decode(text, validate=True) for path, text in said.files.items()}
        except (binascii.Error, ValueError) as error:
            raise ProtocolError(f"a file of model '{said.name}' is not in base64: {error}") from error
        return on_a_thread(partial(self._engine.load_model, said.name, said.config or None, files or None))

    def unload(self, said: UnloadSaid) -> Awaitable[None]:
        """Start to unload."""
        return on_a_thread(partial(self._engine.unload_model, said.name, said.unload_dependents))

    def is_ready(self, said: ReadySaid) -> Awaitable[bool]:
        """Say whether the model serves; one that nobody knows does not."""
        return on_a_thread(partial(self._is_ready, said.name, said.version))

    def _is_ready(self, name: str, version: int) -> bool:
        try:
            return self._engine.is_model_ready(name, version)
        except (InvalidArgument, NotFound):
            return False
