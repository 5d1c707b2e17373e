from __future__ import annotations

import asyncio
import base64
import json
import threading
from typing import Any

import pytest

from plugins.workers.tests.fake_worker import on_loop
from tritonpy.api.engine import Engine
from tritonpy_engine_rpc.engine import (
    INFERENCE,
    METHODS,
    EngineCallMessage,
    RpcEngine,
    call_method,
    run_in_thread,
)
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing import shared_object
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types import InferRequest, RegionKind, SystemRegion
from tritonpy_types.errors import InvalidArgument, Unsupported


class Recorder(ToyEngine):
    """Records loads."""

    loaded: Any = None

    def load_model(self, **arguments: Any) -> None:  # type: ignore[override]
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
        value = await call_method(
            engine, EngineCallMessage("model_config", {"name": "text", "version": -1})
        )
        assert ModelConfig.FromString(base64.b64decode(value)) == engine.model_config("text")


@on_loop
async def test_files_are_bytes_again() -> None:
    with Recorder() as engine:
        files = {"file:1/m": base64.b64encode(b"\x00\xff").decode()}
        message = {"name": "m", "config": "{}", "files": files, "versions": []}
        await call_method(engine, EngineCallMessage("load_model", message))
        assert engine.loaded == {
            "name": "m",
            "config": "{}",
            "files": {"file:1/m": b"\x00\xff"},
            "versions": [],
        }
        message = {"name": "m", "config": None, "files": None, "versions": [1, 3]}
        await call_method(engine, EngineCallMessage("load_model", message))
        assert engine.loaded == {"name": "m", "config": None, "files": None, "versions": [1, 3]}


@on_loop
async def test_errors_are_those_of_the_engine() -> None:
    with ToyEngine() as engine:
        with pytest.raises(InvalidArgument, match="nobody"):
            await call_method(
                engine, EngineCallMessage("model_config", {"name": "nobody", "version": -1})
            )
        for method in ("infer", "attach", "__init__"):
            with pytest.raises(
                Unsupported, match=f"the engine has no method '{method}' for other processes"
            ):
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


class Loopback(RpcEngine):
    """Calls an engine of this process in the way of another process, by way of JSON text."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(self._through_json)
        self._engine = engine

    def infer(self, request: InferRequest) -> None:
        raise NotImplementedError

    def _through_json(self, _verb: str, **message: Any) -> Any:
        read = EngineCallMessage(**json.loads(json.dumps(message)))
        return json.loads(json.dumps(asyncio.run(call_method(self._engine, read))))


def test_every_method_of_the_engine_is_remote_or_concerns_inference() -> None:
    public = {
        name for name, value in vars(Engine).items() if not name.startswith("_") and callable(value)
    }
    assert public == METHODS | INFERENCE


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("server_metadata", ()),
        ("is_live", ()),
        ("is_ready", ()),
        ("is_model_ready", ("text",)),
        ("model_metadata", ("text", 1)),
        ("request_parameters", ("text",)),
        ("model_config", ("text",)),
        ("statistics", ()),
        ("gauges", ()),
        ("custom_metrics", ()),
        ("repository_index", (True,)),
        ("regions", ("system",)),
        ("regions", ("cuda",)),
        ("trace_settings", ()),
        ("log_settings", ()),
        ("operations", ()),
    ],
)
def test_a_remote_result_equals_the_one_of_the_engine(
    method: str, arguments: tuple[Any, ...]
) -> None:
    with ToyEngine() as engine:
        assert getattr(Loopback(engine), method)(*arguments) == getattr(engine, method)(*arguments)  # type: ignore[abstract]


def test_regions_come_back_in_the_type_of_their_kind() -> None:
    with ToyEngine() as engine, shared_object(8) as shared:
        remote = Loopback(engine)  # type: ignore[abstract]
        remote.register_system_region("r", shared.key, 0, 8)
        assert remote.regions(RegionKind.SYSTEM) == engine.regions(RegionKind.SYSTEM)
        assert [type(each) for each in remote.regions(RegionKind.SYSTEM, "r")] == [SystemRegion]
        remote.unregister_regions(RegionKind.SYSTEM)
        assert remote.regions(RegionKind.SYSTEM) == []


def test_a_missing_argument_is_found_before_the_call() -> None:
    with (
        ToyEngine() as engine,
        pytest.raises(TypeError, match="missing a required argument: 'name'"),
    ):
        Loopback(engine).model_config()  # type: ignore[abstract, call-arg]
