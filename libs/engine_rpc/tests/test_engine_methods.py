from __future__ import annotations

import asyncio
import base64
import json
import threading
from typing import Any

import pytest

from plugins.workers.tests.fake_worker import on_loop
from tritonpy.errors import InvalidArgument, Unsupported
from tritonpy_engine_rpc.engine_methods import EngineCallMessage, call_method, run_in_thread
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing.toy_engine import ToyEngine


class Recorder(ToyEngine):
    """Records loads."""

    loaded: tuple[Any, ...] = ()

    def load_model(self, *arguments: Any) -> None:
        self.loaded = arguments


@on_loop
async def test_results_are_json_values() -> None:
    with ToyEngine() as engine:
        for method, arguments in (
            ("server_metadata", {}),
            ("is_live", {}),
            ("is_ready", {}),
            ("is_model_ready", {"name": "text", "version": -1}),
            ("model_metadata", {"name": "text", "version": 1}),
            ("model_config", {"name": "text", "version": 1}),
            ("statistics", {"name": "", "version": -1}),
            ("gauges", {}),
            ("custom_metrics", {}),
            ("repository_index", {"ready": True}),
            ("unload_model", {"name": "text", "unload_dependents": True}),
            ("regions", {"kind": "system", "name": ""}),
            ("unregister_regions", {"kind": "cuda", "name": ""}),
        ):
            value = await call_method(engine, EngineCallMessage(method, arguments))
            assert json.loads(json.dumps(value)) is not False, method


@on_loop
async def test_a_configuration_is_the_message_itself() -> None:
    with ToyEngine() as engine:
        value = await call_method(engine, EngineCallMessage("model_config", {"name": "text", "version": -1}))
        assert ModelConfig.FromString(base64.b64decode(value)) == engine.model_config("text")


@on_loop
async def test_files_are_bytes_again() -> None:
    with Recorder() as engine:
        files = {"file:1/m": base64.b64encode(b"\x00\xff").decode()}
        message = {"name": "m", "config": "{}", "files": files, "versions": []}
        await call_method(engine, EngineCallMessage("load_model", message))
        assert engine.loaded == ("m", "{}", {"file:1/m": b"\x00\xff"}, [])
        message = {"name": "m", "config": None, "files": {}, "versions": [1, 3]}
        await call_method(engine, EngineCallMessage("load_model", message))
        assert engine.loaded == ("m", None, None, [1, 3])


@on_loop
async def test_errors_are_those_of_the_engine() -> None:
    with ToyEngine() as engine:
        with pytest.raises(InvalidArgument, match="nobody"):
            await call_method(engine, EngineCallMessage("model_config", {"name": "nobody", "version": -1}))
        for method in ("infer", "attach", "__init__"):
            with pytest.raises(Unsupported, match=f"the engine has no method '{method}' for other processes"):
                await call_method(engine, EngineCallMessage(method))


@on_loop
async def test_blocking_functions_do_not_block_each_other() -> None:
    meeting = threading.Barrier(40)  # more than the threads of a pool
    await asyncio.gather(*(run_in_thread(meeting.wait) for _ in range(40)))


@on_loop
async def test_an_error_of_the_function_is_raised() -> None:
    def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await run_in_thread(fail)
