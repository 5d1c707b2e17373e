"""Checks of health, metadata, configuration and statistics."""

from __future__ import annotations

import pytest
from tritonclient.utils import InferenceServerException

from tests.client_surface.client_adapter import ClientAdapter


async def is_server_live(adapter: ClientAdapter) -> None:
    assert await adapter("is_server_live") is True


async def is_server_ready(adapter: ClientAdapter) -> None:
    assert await adapter("is_server_ready") is True


async def is_model_ready(adapter: ClientAdapter) -> None:
    assert await adapter("is_model_ready", "add_sub") is True
    assert await adapter("is_model_ready", "add_sub", "1") is True
    assert await adapter("is_model_ready", "größe") is True
    assert await adapter("is_model_ready", "add_sub", "2") is False


async def get_server_metadata(adapter: ClientAdapter) -> None:
    metadata = await adapter.describe("get_server_metadata")
    assert metadata["name"] == "triton"
    assert metadata["version"]
    assert {"classification", "binary_tensor_data", "statistics", "model_repository"} <= set(
        metadata["extensions"]
    )


async def get_model_metadata(adapter: ClientAdapter) -> None:
    metadata = await adapter.describe("get_model_metadata", "add_sub")
    assert (metadata["name"], metadata["versions"]) == ("add_sub", ["1"])
    assert [tensor["name"] for tensor in metadata["outputs"]] == ["OUTPUT0", "OUTPUT1"]
    assert await adapter.describe("get_model_metadata", "add_sub", "1") == metadata
    with pytest.raises(InferenceServerException, match="'add_sub' version 2 is not found"):
        await adapter("get_model_metadata", "add_sub", "2")


async def get_model_config(adapter: ClientAdapter) -> None:
    response = await adapter.describe("get_model_config", "add_sub", "1")
    config = response["config"] if adapter.is_grpc else response
    assert (config["name"], config["backend"]) == ("add_sub", "onnxruntime")
    assert [given["name"] for given in config["input"]] == ["INPUT0", "INPUT1"]


async def get_inference_statistics(adapter: ClientAdapter) -> None:
    async def count(*names: str) -> int:
        (statistics,) = (await adapter.describe("get_inference_statistics", *names))["model_stats"]
        return int(statistics.get("inference_count", 0))

    before = await count("add_sub")
    await adapter("infer", "add_sub", adapter.inputs())
    assert await count("add_sub", "1") == before + 1
    everything = (await adapter.describe("get_inference_statistics"))["model_stats"]
    assert {"add_sub", "repeat"} <= {model["name"] for model in everything}
