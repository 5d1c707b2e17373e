"""Calls of an engine's methods from another process, with JSON values as arguments and results.

`METHODS` names the methods. Their arguments and results are those that `tritonpy.Engine` declares,
so both ends derive their conversions from it: `call_method` on the engine's side, `RpcEngine` on
the caller's side. Bytes travel as base64, a model configuration as the bytes of its message.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from tritonpy import Engine, Unsupported
from tritonpy.frontend import CudaRegion, RegionKind, SystemRegion

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

# The methods that answer from memory. They are called on the event loop of the engine's process.
_FROM_MEMORY = frozenset(
    {
        "server_metadata",
        "is_live",
        "is_ready",
        "model_metadata",
        "request_parameters",
        "model_folder",
        "model_config",
        "log_settings",
        "operations",
    }
)
# Further methods may take as long as loading a model. Each is called on a thread of its own.
_ON_A_THREAD = frozenset(
    {
        "is_model_ready",
        "statistics",
        "gauges",
        "custom_metrics",
        "repository_index",
        "load_model",
        "unload_model",
        "register_repository",
        "unregister_repository",
        "regions",
        "check_region",
        "register_system_region",
        "register_cuda_region",
        "unregister_regions",
        "trace_settings",
        "change_trace_settings",
        "change_log_settings",
        "operate",
    }
)
METHODS = _FROM_MEMORY | _ON_A_THREAD
# Requests do not travel as JSON: each end has frames of its own for them.
INFERENCE = frozenset({"infer", "infer_many"})

RpcCall = Callable[..., Any]
"""Sends a query with keyword arguments and returns its value; raises its `TritonError`."""

_T = TypeVar("_T")


class EngineCallMessage(msgspec.Struct):
    """A method of the engine and its arguments."""

    method: str
    arguments: dict[str, Any] = {}


async def call_method(engine: Engine, message: EngineCallMessage) -> Any:
    """Call a method of `engine` and return its result as a JSON value.

    Raises the errors of the engine, `Unsupported` for an unknown method, and
    `msgspec.ValidationError` for an argument of the wrong type.
    """
    name = message.method
    if name not in METHODS:
        raise Unsupported(f"the engine has no method '{name}' for other processes")
    declared = _declared(name)
    arguments = {
        key: _decode(value, declared.types.get(key, Any))
        for key, value in message.arguments.items()
    }

    def call() -> Any:
        return _encode(getattr(engine, name)(**arguments))

    return call() if name in _FROM_MEMORY else await run_in_thread(call)


async def run_in_thread(act: Callable[[], _T]) -> _T:
    """Run `act` on a new thread and return its result.

    In a pool, models that load models could wait for threads that wait for them.
    """
    pool = ThreadPoolExecutor(1, "worker")
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, act)
    finally:
        pool.shutdown(wait=False)


def _caller(name: str) -> Callable[..., Any]:
    def call(self: RpcEngine, *positional: Any, **named: Any) -> Any:
        return self.remote(name, *positional, **named)

    call.__name__, call.__doc__ = name, inspect.getdoc(getattr(Engine, name))
    return call


if TYPE_CHECKING:
    _Methods = Engine
else:
    _Methods = type("_Methods", (Engine,), {name: _caller(name) for name in sorted(METHODS)})


class RpcEngine(_Methods):
    """An engine whose `METHODS` are RPC calls. The subclass implements `infer`."""

    def __init__(self, call: RpcCall) -> None:
        self._call = call

    def remote(self, method: str, *positional: Any, **named: Any) -> Any:
        """Return the result of a method of the remote engine."""
        declared = _declared(method)
        bound = declared.signature.bind(*positional, **named)
        bound.apply_defaults()
        arguments = {key: _encode(value) for key, value in bound.arguments.items()}
        result = self._call("engine", method=method, arguments=arguments)
        return _decode(result, declared.result_type(bound.arguments))


class _Declared:
    """The signature and the types of a method, as `Engine` declares them."""

    def __init__(self, name: str) -> None:
        from tritonpy_protos.model_config_pb2 import ModelConfig

        function = getattr(Engine, name)
        self.types = get_type_hints(function, localns={"ModelConfig": ModelConfig})
        self._result = self.types.pop("return")
        signature = inspect.signature(function)
        self.signature = signature.replace(parameters=[*signature.parameters.values()][1:])

    def result_type(self, arguments: Mapping[str, Any]) -> Any:
        """Return the type of the result of a call with `arguments`."""
        if {SystemRegion, CudaRegion} <= {*get_args(next(iter(get_args(self._result)), None))}:
            return (
                list[SystemRegion] if arguments["kind"] == RegionKind.SYSTEM else list[CudaRegion]
            )
        return self._result


_declared = cache(_Declared)


def _encode(value: Any) -> Any:
    if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
        value = list(value.items())
    return msgspec.to_builtins(value, enc_hook=_encode_config)


def _encode_config(config: Any) -> str:
    return base64.b64encode(config.SerializeToString()).decode()


def _decode(value: Any, kind: Any) -> Any:
    if (
        get_origin(kind) is not None
        and issubclass(get_origin(kind), Mapping)
        and get_args(kind)[0] is not str
    ):
        key, item = get_args(kind)
        return dict(msgspec.convert(value, list[tuple[key, item]]))  # type: ignore[valid-type]
    return msgspec.convert(value, kind, dec_hook=_decode_config)


def _decode_config(kind: type[ModelConfig], value: str) -> ModelConfig:
    return kind.FromString(base64.b64decode(value))
