"""Checks of shared memory: regions that clients create, and tensors in them."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException, shared_memory

from tests.client_surface.client_adapter import LEFT, RIGHT, ClientAdapter

SIZE = LEFT.nbytes
PAGE = 4096
GPU = shutil.which("nvidia-smi") is not None


@contextlib.contextmanager
def region() -> Iterator[tuple[str, Any]]:
    """Yield the name (and key) and the handle of a new region.

    It holds the inputs of `add_sub` and has space for one output.
    """
    name = f"surface_{secrets.token_hex(4)}"
    handle = shared_memory.create_shared_memory_region(name, f"/{name}", 2 * PAGE)
    try:
        shared_memory.set_shared_memory_region(handle, [LEFT, RIGHT])
        yield name, handle
    finally:
        shared_memory.destroy_shared_memory_region(handle)


async def register_system_shared_memory(adapter: ClientAdapter) -> None:
    with region() as (name, handle):
        await adapter("register_system_shared_memory", name, f"/{name}", 3 * SIZE)
        try:
            with pytest.raises(
                InferenceServerException, match=f"shared memory region '{name}' already in manager"
            ):
                await adapter("register_system_shared_memory", name, f"/{name}", 3 * SIZE)
            inputs = [
                adapter.protocol.InferInput(f"INPUT{index}", [1, 16], "INT32") for index in (0, 1)
            ]
            for index, given in enumerate(inputs):
                given.set_shared_memory(name, SIZE, index * SIZE)
            wanted = adapter.protocol.InferRequestedOutput("OUTPUT0")
            wanted.set_shared_memory(name, SIZE, 2 * SIZE)
            await adapter("infer", "add_sub", inputs, outputs=[wanted])
            found = shared_memory.get_contents_as_numpy(handle, np.int32, [1, 16], 2 * SIZE)
            assert (found == LEFT + RIGHT).all()
        finally:
            await adapter("unregister_system_shared_memory", name)


async def get_system_shared_memory_status(adapter: ClientAdapter) -> None:
    with region() as (name, _):
        await adapter("register_system_shared_memory", name, f"/{name}", SIZE, PAGE)
        try:
            status = await adapter.describe("get_system_shared_memory_status", name)
            (entry,) = status["regions"].values() if adapter.is_grpc else status
            assert (entry["name"], entry["key"]) == (name, f"/{name}")
            assert (int(entry["offset"]), int(entry["byte_size"])) == (PAGE, SIZE)
            assert name in str(await adapter.describe("get_system_shared_memory_status"))
        finally:
            await adapter("unregister_system_shared_memory", name)


async def unregister_system_shared_memory(adapter: ClientAdapter) -> None:
    with region() as (name, _):
        await adapter("register_system_shared_memory", name, f"/{name}", SIZE)
        await adapter("unregister_system_shared_memory")
        with pytest.raises(
            InferenceServerException, match=f"Unable to find system shared memory region: '{name}'"
        ):
            await adapter("get_system_shared_memory_status", name)


async def register_cuda_shared_memory(adapter: ClientAdapter) -> None:
    if GPU:
        pytest.skip("needs a GPU that the server and its client share")
    with pytest.raises(InferenceServerException, match="failed to register"):
        await adapter("register_cuda_shared_memory", "cuda", b64encode(bytes(64)), 0, SIZE)


async def get_cuda_shared_memory_status(adapter: ClientAdapter) -> None:
    status = await adapter.describe("get_cuda_shared_memory_status")
    assert not (status.get("regions") if adapter.is_grpc else status)


async def unregister_cuda_shared_memory(adapter: ClientAdapter) -> None:
    await adapter("unregister_cuda_shared_memory")
    await adapter("unregister_cuda_shared_memory", "never registered")
