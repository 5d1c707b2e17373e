"""Health, metadata, configuration, statistics."""

from __future__ import annotations

import pytest
from tritonclient.utils import InferenceServerException

from tests.client_surface.talk import Talk


async def is_server_live(talk: Talk) -> None:
    assert await talk("is_server_live") is True


async def is_server_ready(talk: Talk) -> None:
    assert await talk("is_server_ready") is True


async def is_model_ready(talk: Talk) -> None:
    assert await talk("is_model_ready", "add_sub") is True
    assert await talk("is_model_ready", "add_sub", "1") is True
    assert await talk("is_model_ready", "größe") is True
    assert await talk("is_model_ready", "add_sub", "2") is False


async def get_server_metadata(talk: Talk) -> None:
    metadata = await talk.told("get_server_metadata")
    assert metadata["name"] == "triton"
    assert metadata["version"]
    assert {"classification", "binary_tensor_data", "statistics", "model_repository"} <= set(metadata["extensions"])


async def get_model_metadata(talk: Talk) -> None:
    metadata = await talk.told("get_model_metadata", "add_sub")
    assert (metadata["name"], metadata["versions"]) == ("add_sub", ["1"])
    assert [tensor["name"] for tensor in metadata["outputs"]] == ["OUTPUT0", "OUTPUT1"]
    assert await talk.told("get_model_metadata", "add_sub", "1") == metadata
    with pytest.raises(InferenceServerException, match="'add_sub' version 2 is not found"):
        await talk("get_model_metadata", "add_sub", "2")


async def get_model_config(talk: Talk) -> None:
    told = await talk.told("get_model_config", "add_sub", "1")
    config = told["config"] if talk.is_grpc else told
    assert (config["name"], config["backend"]) == ("add_sub", "onnxruntime")
    assert [given["name"] for given in config["input"]] == ["INPUT0", "INPUT1"]


async def get_inference_statistics(talk: Talk) -> None:
    async def count(*names: str) -> int:
        (statistics,) = (await talk.told("get_inference_statistics", *names))["model_stats"]
        return int(statistics.get("inference_count", 0))

    before = await count("add_sub")
    await talk("infer", "add_sub", talk.inputs())
    assert await count("add_sub", "1") == before + 1
    everything = (await talk.told("get_inference_statistics"))["model_stats"]
    assert {"add_sub", "repeat"} <= {model["name"] for model in everything}
