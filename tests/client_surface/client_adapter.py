"""A common asynchronous interface to tritonclient's four clients."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio

MODULES = {
    "http": tritonclient.http,
    "http aio": tritonclient.http.aio,
    "grpc": tritonclient.grpc,
    "grpc aio": tritonclient.grpc.aio,
}
LEFT = np.arange(16, dtype=np.int32).reshape(1, 16)
RIGHT = np.full((1, 16), 3, np.int32)


def public_methods(kind: str) -> list[str]:
    """Return the names of the public methods of a kind of client."""
    members = inspect.getmembers(MODULES[kind].InferenceServerClient)
    return sorted(name for name, member in members if callable(member) and not name.startswith("_"))


@dataclass
class ClientAdapter:
    """A client, its server, and the names of the methods that were called."""

    kind: str
    server: Any
    client: Any
    called: set[str] = field(default_factory=set)

    @property
    def protocol(self) -> Any:
        """tritonclient's module with the tensors of the protocol."""
        return MODULES[self.kind.removesuffix(" aio")]

    @property
    def is_grpc(self) -> bool:
        return self.kind.startswith("grpc")

    async def __call__(self, method: str, *args: Any, **options: Any) -> Any:
        """Call a method; awaitable results are awaited."""
        self.called.add(method)
        found = getattr(self.client, method)(*args, **options)
        return await found if inspect.isawaitable(found) else found

    async def describe(self, method: str, *args: Any, **options: Any) -> Any:
        """Call a method that returns a description, and return that as JSON."""
        return await self(method, *args, **options, **({"as_json": True} if self.is_grpc else {}))

    async def index(self) -> dict[str, dict[str, Any]]:
        """Return the repository index by model name."""
        index = await self.describe("get_model_repository_index")
        return {model["name"]: model for model in (index["models"] if self.is_grpc else index)}

    def inputs(self) -> list[Any]:
        """Return the inputs of `add_sub`."""
        inputs = [self.protocol.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
        for given, values in zip(inputs, (LEFT, RIGHT), strict=True):
            given.set_data_from_numpy(values)
        return inputs


def assert_added(result: Any) -> None:
    """Assert that the result is that of `add_sub` for `inputs`."""
    assert (result.as_numpy("OUTPUT0") == LEFT + RIGHT).all()
    assert (result.as_numpy("OUTPUT1") == LEFT - RIGHT).all()
