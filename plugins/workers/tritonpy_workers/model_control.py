"""Loading, unloading and readiness of other models, on behalf of a worker."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable
from functools import partial

import msgspec

from tritonpy import Engine, InvalidArgument, NotFound
from tritonpy_engine_rpc.engine import run_in_thread
from tritonpy_engine_rpc.messages import Int64
from tritonpy_ipc import ProtocolError


class LoadMessage(msgspec.Struct):
    """A model to load or reload; `files` are in base64."""

    name: str
    config: str = ""
    files: dict[str, str] = {}


class UnloadMessage(msgspec.Struct):
    """A model to unload."""

    name: str
    unload_dependents: bool = False


class ReadyMessage(msgspec.Struct):
    """The model whose readiness is queried, in one version or any (-1)."""

    name: str
    version: Int64 = -1


class ModelControl:
    """Model control for a worker.

    Methods raise the engine's errors unchanged. The worker adds the prefixes that Triton has.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def load(self, message: LoadMessage) -> Awaitable[None]:
        """Load or reload a model; finishes when it serves."""
        try:
            files = {
                path: base64.b64decode(text, validate=True) for path, text in message.files.items()
            }
        except (binascii.Error, ValueError) as error:
            raise ProtocolError(
                f"a file of model '{message.name}' is not valid base64: {error}"
            ) from error
        return run_in_thread(
            partial(self._engine.load_model, message.name, message.config or None, files or None)
        )

    def unload(self, message: UnloadMessage) -> Awaitable[None]:
        """Start to unload a model."""
        return run_in_thread(
            partial(self._engine.unload_model, message.name, message.unload_dependents)
        )

    def is_ready(self, message: ReadyMessage) -> Awaitable[bool]:
        """Return whether a model is ready; an unknown one is not."""
        return run_in_thread(partial(self._is_ready, message.name, message.version))

    def _is_ready(self, name: str, version: int) -> bool:
        try:
            return self._engine.is_model_ready(name, version)
        except (InvalidArgument, NotFound):
            return False
