"""The repository, the settings of logs and traces, and the client itself."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from tritonclient.utils import InferenceServerException

from tests.client_surface.talk import Talk, assert_added


class Signing:
    """A plugin that adds a header and counts the requests that it saw."""

    def __init__(self, talk: Talk) -> None:
        self.seen = 0
        base: Any = talk.protocol.InferenceServerClientPlugin

        def sign(_plugin: Any, request: Any) -> None:
            self.seen += 1
            request.headers["x-signed"] = "yes"

        self.plugin = type("Plugin", (base,), {"__call__": sign})()


async def get_model_repository_index(talk: Talk) -> None:
    index = await talk.index()
    assert (index["add_sub"]["state"], index["add_sub"]["version"]) == ("READY", "1")
    assert "spare" in index


async def load_model(talk: Talk) -> None:
    await talk("load_model", "spare", config='{"backend": "onnxruntime", "max_batch_size": 3}')
    try:
        told = await talk.told("get_model_config", "spare")
        assert (told["config"] if talk.is_grpc else told)["max_batch_size"] == 3
        await talk("load_model", "spare")
        assert await talk("is_model_ready", "spare")
    finally:
        await talk("unload_model", "spare")
    with pytest.raises(InferenceServerException, match="failed to load 'nowhere', failed to poll"):
        await talk("load_model", "nowhere")


async def unload_model(talk: Talk) -> None:
    await talk("load_model", "spare")
    await talk("unload_model", "spare", unload_dependents=True)
    while (entry := (await talk.index())["spare"])["state"] == "UNLOADING":
        pass
    assert (entry["state"], entry["reason"]) == ("UNAVAILABLE", "unloaded")


async def get_trace_settings(talk: Talk) -> None:
    settings = _values(await talk.told("get_trace_settings"))
    assert settings["trace_level"] == ["OFF"]
    assert {"trace_rate", "trace_count", "log_frequency", "trace_file", "trace_mode"} <= set(settings)
    assert _values(await talk.told("get_trace_settings", "add_sub")) == settings


async def update_trace_settings(talk: Talk) -> None:
    told = await talk.told("update_trace_settings", "add_sub", {"trace_level": ["TIMESTAMPS"], "trace_rate": "7"})
    try:
        settings = _values(told)
        assert (settings["trace_level"], settings["trace_rate"]) == (["TIMESTAMPS"], ["7"])
        assert _values(await talk.told("get_trace_settings"))["trace_level"] == ["OFF"]
        with pytest.raises(InferenceServerException, match="trace file location can not be updated"):
            await talk("update_trace_settings", None, {"trace_file": "/tmp/elsewhere"})
    finally:
        await talk("update_trace_settings", "add_sub", {"trace_level": None, "trace_rate": None})
    assert _values(await talk.told("get_trace_settings", "add_sub"))["trace_level"] == ["OFF"]


async def get_log_settings(talk: Talk) -> None:
    settings = _log_settings(await talk.told("get_log_settings"))
    assert (settings["log_info"], settings["log_verbose_level"], settings["log_format"]) == (True, 0, "default")
    assert {"log_file", "log_warning", "log_error"} <= set(settings)


async def update_log_settings(talk: Talk) -> None:
    told = await talk.told("update_log_settings", {"log_verbose_level": 1, "log_info": False})
    try:
        settings = _log_settings(told)
        assert (settings["log_verbose_level"], settings.get("log_info", False)) == (1, False)
    finally:
        await talk("update_log_settings", {"log_verbose_level": 0, "log_info": True})
    assert _log_settings(await talk.told("get_log_settings"))["log_info"] is True


async def plugin(talk: Talk) -> None:
    signing = Signing(talk)
    await talk("register_plugin", signing.plugin)
    assert await talk("plugin") is signing.plugin
    await talk("unregister_plugin")
    assert await talk("plugin") is None


async def register_plugin(talk: Talk) -> None:
    signing = Signing(talk)
    await talk("register_plugin", signing.plugin)
    with pytest.raises(InferenceServerException, match="plugin"):
        await talk("register_plugin", signing.plugin)
    assert await talk("is_server_live")
    assert_added(await talk("infer", "add_sub", talk.inputs()))
    assert signing.seen == 2
    await talk("unregister_plugin")


async def unregister_plugin(talk: Talk) -> None:
    signing = Signing(talk)
    await talk("register_plugin", signing.plugin)
    await talk("unregister_plugin")
    assert await talk("is_server_live")
    assert signing.seen == 0


async def close(talk: Talk) -> None:
    assert await talk("is_server_live")
    await talk("close")
    if talk.kind != "http":  # the pool of that one opens connections again
        with pytest.raises(Exception, match=r"(?i)closed"):
            await talk("is_server_live")
    with contextlib.suppress(Exception):
        await talk("close")


def _values(settings: Any) -> dict[str, list[str]]:
    # gRPC wraps each value in a message, HTTP gives one text or several
    if isinstance(settings.get("settings"), dict):
        return {name: entry.get("value", []) for name, entry in settings["settings"].items()}
    return {name: value if isinstance(value, list) else [value] for name, value in settings.items()}


def _log_settings(settings: Any) -> dict[str, Any]:
    if not isinstance(settings.get("settings"), dict):
        return dict(settings)
    return {name: next(iter(entry.values()), None) for name, entry in settings["settings"].items()}
