"""A server inside a program."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - see _stop_running
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import msgspec

import tritonpy
from tritonpy.config import BOOLEANS, decode_server_config
from tritonpy.server import configure_logging
from tritonpy_tritonserver_api.errors import (
    InvalidArgumentError,
    UnavailableError,
    translated,
)
from tritonpy_tritonserver_api.frontends import make_frontend
from tritonpy_tritonserver_api.metrics import measured
from tritonpy_tritonserver_api.model import Model
from tritonpy_tritonserver_api.names import MetricFormat
from tritonpy_tritonserver_api.options import Options, server_config

_UNLOADED = (None, "", "UNAVAILABLE")


class ModelDictionary(dict[tuple[str, int], Model]):
    """Models by name and version; a name alone finds the version that the server selects."""

    def __init__(self, server: Server, models: list[Model]) -> None:
        super().__init__({(model.name, model.version): model for model in models})
        self._server = server

    def __getitem__(self, key: tuple[str, int] | str) -> Model:
        if isinstance(key, tuple) and key in self:
            return super().__getitem__(key)
        if any(key == name for name, _ in self):
            return Model(self._server, str(key))
        raise KeyError(f"Unknown Model: {key}")


class Server:
    """An inference server inside this program, with Triton's options and without ports.

    It stops with `stop`, or when neither it nor a model or response of it is referenced.
    """

    def __init__(self, options: Options | None = None, **kwargs: Any) -> None:
        """Take the options, or the fields of `Options`."""
        self.options = Options(**kwargs) if options is None else options
        self._started: StartedServer | None = None

    def start(
        self,
        wait_until_ready: bool = False,
        polling_interval: float = 0.1,
        timeout: float | None = None,
    ) -> Server:
        """Load the models and serve them; return the server.

        With `wait_until_ready`, return when it is ready; raises `UnavailableError` after `timeout`
        seconds. Raises `InvalidArgumentError` if it has started, `InternalError` if it cannot
        start, and `TypeError` for options of a wrong type.
        """
        if self._started is not None:
            raise InvalidArgumentError("Server already started")
        self._started = StartedServer(self.options)
        end = None if timeout is None else time.monotonic() + timeout
        while wait_until_ready and not self.ready():
            if end is not None and time.monotonic() >= end:
                raise UnavailableError("Timeout before ready")
            time.sleep(polling_interval)
        return self

    def stop(self) -> None:
        """Finish the requests in flight and stop. The server may start again."""
        started = self.started()
        self._started = None
        started.stop()

    def started(self) -> StartedServer:
        """Return the running server. Raises `InvalidArgumentError` if there is none."""
        if self._started is None:
            raise InvalidArgumentError("Server not started")
        return self._started

    @property
    def _engine(self) -> tritonpy.Engine:
        return self.started().engine

    def live(self) -> bool:
        """Return whether the server runs."""
        return self._engine.is_live()

    def ready(self) -> bool:
        """Return whether the server and, with `strict_readiness`, its models are ready."""
        return self._engine.is_ready()

    def metadata(self) -> dict[str, Any]:
        """Return name, version and protocol extensions."""
        found: dict[str, Any] = msgspec.to_builtins(self._engine.server_metadata())
        return found

    def metrics(self, metric_format: MetricFormat = MetricFormat.PROMETHEUS) -> str:
        """Return the metrics as text; empty if the option `metrics` is off."""
        if metric_format is not MetricFormat.PROMETHEUS:
            raise InvalidArgumentError(f"unknown format of metrics: {metric_format}")
        return self.started().metrics()

    def model(self, model_name: str, model_version: int = -1) -> Model:
        """Return the object of a model, which need not exist."""
        return Model(self, model_name, model_version)

    def models(self, exclude_not_ready: bool = False) -> ModelDictionary:
        """Return the models of the repositories by name and version."""
        with translated():
            index = self._engine.repository_index(exclude_not_ready)
        return ModelDictionary(
            self,
            [
                Model(self, each.name, int(each.version or -1), each.state or None, each.reason)
                for each in index
            ],
        )

    def load(
        self, model_name: str, parameters: dict[str, str | int | bool | bytes] | None = None
    ) -> Model:
        """Load or reload a model, and return it when it serves.

        The parameter "config" (JSON) replaces its configuration, "file:PATH" one of its files.
        Raises the error of the load, `UnavailableError` unless the mode is EXPLICIT.
        """
        config, files = None, {}
        for name, value in (parameters or {}).items():
            if name == "config" and isinstance(value, str):
                config = value
            elif name.startswith("file:") and isinstance(value, bytes):
                files[name] = value
            else:
                raise InvalidArgumentError(f"unexpected parameter '{name}' of a load request")
        with translated():
            self._engine.load_model(model_name, config, files or None)
        return self.model(model_name)

    def unload(
        self,
        model: str | Model,
        unload_dependents: bool = False,
        wait_until_unloaded: bool = False,
        polling_interval: float = 0.1,
        timeout: float | None = None,
    ) -> None:
        """Start to unload a model.

        With `wait_until_unloaded`, return when it is unloaded, or after `timeout` seconds.
        `unload_dependents` unloads the models of an ensemble with it.
        """
        name = model if isinstance(model, str) else model.name
        with translated():
            self._engine.unload_model(name, unload_dependents)
        end = None if timeout is None else time.monotonic() + timeout
        while wait_until_unloaded and not self._is_unloaded(name):
            if end is not None and time.monotonic() >= end:
                return
            time.sleep(polling_interval)

    def _is_unloaded(self, name: str) -> bool:
        return all(
            model.state in _UNLOADED for key, model in self.models().items() if key[0] == name
        )

    def register_model_repository(
        self, repository_path: str, name_mapping: dict[str, str] | None = None
    ) -> None:
        """Add a repository, whose models `load` then finds.

        `name_mapping` maps folders to names of models. Raises `AlreadyExistsError`.
        """
        mapping = {name: folder for folder, name in (name_mapping or {}).items()}
        with translated():
            self._engine.register_repository(repository_path, mapping)

    def unregister_model_repository(self, repository_path: str) -> None:
        """Remove a repository; loaded models keep serving.

        Raises `InvalidArgumentError` if it is not registered.
        """
        with translated():
            self._engine.unregister_repository(repository_path)

    def poll_model_repository(self) -> None:
        """Load, reload and unload what changed.

        Raises `UnavailableError` unless the mode is POLL.
        """
        started = self.started()
        with translated():
            started.poll()


class StartedServer:
    """A server from its start to its stop. Models and responses keep it alive."""

    def __init__(self, options: Options) -> None:
        stack = ExitStack()
        with translated():
            config = decode_server_config(server_config(options))
            configure_logging(config.logging)
            running = stack.enter_context(tritonpy.running_server(config))
        self._engine: tritonpy.Engine | None = running.engine
        self._poll: Callable[[], None] = running.poll
        self._renderer = _metrics_frontend(options) if options.metrics else None
        self._stop = weakref.finalize(self, stack.close)  # which does not refer to this object
        self._stop.atexit = False
        _running.add(self)

    def started(self) -> StartedServer:
        """Return this object, as `Server.started` does."""
        return self

    @property
    def engine(self) -> tritonpy.Engine:
        """The engine. Raises `InvalidArgumentError` after `stop`."""
        if self._engine is None:
            raise InvalidArgumentError("Server not started")
        return self._engine

    def poll(self) -> None:
        """Apply the changes of the repositories. Raises Unavailable in another mode."""
        self._poll()

    def metrics(self) -> str:
        """Return the metrics as text."""
        text: str = "" if self._renderer is None else self._renderer.text(measured(self.engine))
        return text

    def stop(self) -> None:
        """Finish the requests in flight and stop."""
        self._engine = None
        self._stop()


_running: weakref.WeakSet[StartedServer] = weakref.WeakSet()


def _stop_running() -> None:
    for each in list(_running):
        each.stop()


# Functions of `atexit` come too late: a server cannot stop when the pools of threads are closed.
# Those of `threading` run in reverse order, so the pools' own must be registered before.
threading._register_atexit(_stop_running)  # type: ignore[attr-defined]


def _metrics_frontend(options: Options) -> Any:
    given = options.metrics_configuration.get("", {}).get("counter_latencies", "true")
    return make_frontend(
        "metrics",
        {
            "cpu": options.cpu_metrics,
            "gpu": options.gpu_metrics,
            "interval_ms": options.metrics_interval,
            "counter_latencies": BOOLEANS.get(given.lower(), True),
        },
    )
