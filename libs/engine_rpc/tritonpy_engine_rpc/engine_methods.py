"""Methods of the engine for other processes, with JSON values as arguments and results."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec

from tritonpy import Engine, LogChanges, OperationCall, TraceChanges, Unsupported


class EngineCallMessage(msgspec.Struct):
    """A method of the engine and its arguments."""

    method: str
    arguments: dict[str, Any] = {}


async def call_method(engine: Engine, message: EngineCallMessage) -> Any:
    """Call a method of `engine` and return its result.

    Methods that answer from memory are called immediately. Others run on a thread, as they may take
    as long as loading a model. Raises the errors of the engine, and `Unsupported` for an unknown
    method.
    """
    call = _METHODS.get(message.method)
    if call is None:
        raise Unsupported(f"the engine has no method '{message.method}' for other processes")
    if message.method in _FROM_MEMORY:
        return call(engine, **message.arguments)
    return await run_in_thread(lambda: call(engine, **message.arguments))


def _config(engine: Engine, name: str, version: int) -> str:
    return base64.b64encode(engine.model_config(name, version).SerializeToString()).decode()


def _load(
    engine: Engine, name: str, config: str | None, files: Mapping[str, str], versions: Sequence[int]
) -> None:  # fmt: skip
    engine.load_model(name, config, {path: base64.b64decode(data) for path, data in files.items()} or None, versions)


def _register_cuda(engine: Engine, name: str, handle: str, device_id: int, byte_size: int) -> None:
    engine.register_cuda_region(name, base64.b64decode(handle), device_id, byte_size)


def _change_trace_settings(engine: Engine, changes: Mapping[str, Any], model_name: str) -> None:
    engine.change_trace_settings(msgspec.convert(changes, TraceChanges), model_name)


def _change_log_settings(engine: Engine, changes: Mapping[str, Any]) -> None:
    engine.change_log_settings(msgspec.convert(changes, LogChanges))


def _operate(engine: Engine, name: str, call: Mapping[str, Any]) -> Any:
    return engine.operate(name, msgspec.convert(call, OperationCall))


def _gauges(engine: Engine) -> Any:
    return msgspec.to_builtins(list(engine.gauges().items()))


def _plain(method: str) -> Callable[..., Any]:
    def call(engine: Engine, **arguments: Any) -> Any:
        return msgspec.to_builtins(getattr(engine, method)(**arguments))

    return call


_METHODS: dict[str, Callable[..., Any]] = {
    "server_metadata": _plain("server_metadata"),
    "is_live": _plain("is_live"),
    "is_ready": _plain("is_ready"),
    "is_model_ready": _plain("is_model_ready"),
    "model_metadata": _plain("model_metadata"),
    "request_parameters": _plain("request_parameters"),
    "model_config": _config,
    "statistics": _plain("statistics"),
    "gauges": _gauges,
    "custom_metrics": _plain("custom_metrics"),
    "repository_index": _plain("repository_index"),
    "trace_settings": _plain("trace_settings"),
    "change_trace_settings": _change_trace_settings,
    "log_settings": _plain("log_settings"),
    "change_log_settings": _change_log_settings,
    "load_model": _load,
    "unload_model": _plain("unload_model"),
    "regions": _plain("regions"),
    "check_region": _plain("check_region"),
    "register_system_region": _plain("register_system_region"),
    "register_cuda_region": _register_cuda,
    "unregister_regions": _plain("unregister_regions"),
    "operations": _plain("operations"),
    "operate": _operate,
}
_FROM_MEMORY = frozenset(
    {
        "server_metadata",
        "is_live",
        "is_ready",
        "model_metadata",
        "request_parameters",
        "model_config",
        "log_settings",
        "operations",
    }
)


_T = TypeVar("_T")


async def run_in_thread(act: Callable[[], _T]) -> _T:
    """Run `act` on a new thread and return its result.

    In a pool, models that load models could wait for threads that wait for them.
    """
    pool = ThreadPoolExecutor(1, "worker")
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, act)
    finally:
        pool.shutdown(wait=False)
