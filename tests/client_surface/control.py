"""Checks of the model repository API, of log and trace settings, and of the client object itself."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from tritonclient.utils import InferenceServerException

from tests.client_surface.client_adapter import ClientAdapter, assert_added


class Signing:
    """A plugin that adds a header and counts the requests that it gets."""

    def __init__(self, adapter: ClientAdapter) -> None:
        self.seen = 0
        base: Any = adapter.protocol.InferenceServerClientPlugin

        def sign(_plugin: Any, request: Any) -> None:
            self.seen += 1
            request.headers["x-signed"] = "yes"

        self.plugin = type("Plugin", (base,), {"__call__": sign})()


async def get_model_repository_index(adapter: ClientAdapter) -> None:
    index = await adapter.index()
    assert (index["add_sub"]["state"], index["add_sub"]["version"]) == ("READY", "1")
    assert "spare" in index


async def load_model(adapter: ClientAdapter) -> None:
    await adapter("load_model", "spare", config='{"backend": "onnxruntime", "max_batch_size": 3}')
    try:
        response = await adapter.describe("get_model_config", "spare")
        assert (response["config"] if adapter.is_grpc else response)["max_batch_size"] == 3
        await adapter("load_model", "spare")
        assert await adapter("is_model_ready", "spare")
    finally:
        await adapter("unload_model", "spare")
    with pytest.raises(InferenceServerException, match="failed to load 'nowhere', failed to poll"):
        await adapter("load_model", "nowhere")


async def unload_model(adapter: ClientAdapter) -> None:
    await adapter("load_model", "spare")
    await adapter("unload_model", "spare", unload_dependents=True)
    while (entry := (await adapter.index())["spare"])["state"] == "UNLOADING":
        pass
    assert (entry["state"], entry["reason"]) == ("UNAVAILABLE", "unloaded")


async def get_trace_settings(adapter: ClientAdapter) -> None:
    settings = _values(await adapter.describe("get_trace_settings"))
    assert settings["trace_level"] == ["OFF"]
    assert {"trace_rate", "trace_count", "log_frequency", "trace_file", "trace_mode"} <= set(
        settings
    )
    assert _values(await adapter.describe("get_trace_settings", "add_sub")) == settings


async def update_trace_settings(adapter: ClientAdapter) -> None:
    updated = await adapter.describe(
        "update_trace_settings", "add_sub", {"trace_level": ["TIMESTAMPS"], "trace_rate": "7"}
    )
    try:
        settings = _values(updated)
        assert (settings["trace_level"], settings["trace_rate"]) == (["TIMESTAMPS"], ["7"])
        assert _values(await adapter.describe("get_trace_settings"))["trace_level"] == ["OFF"]
        with pytest.raises(
            InferenceServerException, match="trace file location can not be updated"
        ):
            await adapter("update_trace_settings", None, {"trace_file": "/tmp/elsewhere"})
    finally:
        await adapter("update_trace_settings", "add_sub", {"trace_level": None, "trace_rate": None})
    assert _values(await adapter.describe("get_trace_settings", "add_sub"))["trace_level"] == [
        "OFF"
    ]


async def get_log_settings(adapter: ClientAdapter) -> None:
    settings = _log_settings(await adapter.describe("get_log_settings"))
    assert (settings["log_info"], settings["log_verbose_level"], settings["log_format"]) == (
        True,
        0,
        "default",
    )
    assert {"log_file", "log_warning", "log_error"} <= set(settings)


async def update_log_settings(adapter: ClientAdapter) -> None:
    updated = await adapter.describe(
        "update_log_settings", {"log_verbose_level": 1, "log_info": False}
    )
    try:
        settings = _log_settings(updated)
        assert (settings["log_verbose_level"], settings.get("log_info", False)) == (1, False)
    finally:
        await adapter("update_log_settings", {"log_verbose_level": 0, "log_info": True})
    assert _log_settings(await adapter.describe("get_log_settings"))["log_info"] is True


async def plugin(adapter: ClientAdapter) -> None:
    signing = Signing(adapter)
    await adapter("register_plugin", signing.plugin)
    assert await adapter("plugin") is signing.plugin
    await adapter("unregister_plugin")
    assert await adapter("plugin") is None


async def register_plugin(adapter: ClientAdapter) -> None:
    signing = Signing(adapter)
    await adapter("register_plugin", signing.plugin)
    with pytest.raises(InferenceServerException, match="plugin"):
        await adapter("register_plugin", signing.plugin)
    assert await adapter("is_server_live")
    assert_added(await adapter("infer", "add_sub", adapter.inputs()))
    assert signing.seen == 2
    await adapter("unregister_plugin")


async def unregister_plugin(adapter: ClientAdapter) -> None:
    signing = Signing(adapter)
    await adapter("register_plugin", signing.plugin)
    await adapter("unregister_plugin")
    assert await adapter("is_server_live")
    assert signing.seen == 0


async def close(adapter: ClientAdapter) -> None:
    assert await adapter("is_server_live")
    await adapter("close")
    if adapter.kind != "http":  # the HTTP client's pool reopens connections
        with pytest.raises(Exception, match=r"(?i)closed"):
            await adapter("is_server_live")
    with contextlib.suppress(Exception):
        await adapter("close")


def _values(settings: Any) -> dict[str, list[str]]:
    # gRPC wraps each value in a message; HTTP returns a string or a list of strings
    if isinstance(settings.get("settings"), dict):
        return {name: entry.get("value", []) for name, entry in settings["settings"].items()}
    return {name: value if isinstance(value, list) else [value] for name, value in settings.items()}


def _log_settings(settings: Any) -> dict[str, Any]:
    if not isinstance(settings.get("settings"), dict):
        return dict(settings)
    return {name: next(iter(entry.values()), None) for name, entry in settings["settings"].items()}
