"""A model instance in a worker process."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from typing import Any

from . import host as hosts
from . import memory, model_object
from .channel_host import ChannelHost
from .coroutines import Coroutines
from .execution import Executor
from .failure import ModelContractError, describe_error
from .frame_sink import FrameSink
from .ipc import VERSION, Kind
from .ipc.channel import Channel
from .model_file import load_class
from .readiness import Readiness
from .response_frame import ResponseFrame
from .string_checker import StringChecker


class Instance:
    """The initialized model of a START frame and its environment.

    Raises `ModelContractError`, and exceptions of the model's import, construction and
    initialization.
    """

    def __init__(self, start: Mapping[str, Any], channel: Channel) -> None:
        if start["version"] != VERSION:
            raise ModelContractError(
                f"the worker uses version {VERSION} of the protocol, the server version "
                f"{start['version']}"
            )
        args = start["args"]
        name = args["model_instance_name"]
        self.outputs: tuple[str, ...] = tuple(start["outputs"])
        self.answers = ResponseFrame(channel, name)
        self.host = ChannelHost(
            channel, name, os.path.dirname(start["model_file"]), start["decoupled"], self.answers
        )
        self._coroutines = Coroutines()
        if start["decoupled"]:
            self._coroutines.enable_flow_control()
        if start["execution_limit"]:
            self._coroutines.await_begin()
        hosts.set_process_host(self.host)
        if start["memory_limit"]:
            memory.limit(start["memory_limit"])
        reserve = memory.Reserve()
        module, path = load_class(start["model_file"], start["backend_directory"])
        self._model = model_object.make(module, args)
        self.sink = sink = FrameSink(self.host, self.answers)
        self.strings = StringChecker(args["model_name"], sink)
        self.executor = Executor(
            self._model, path, name, start["decoupled"], sink, self._coroutines, reserve
        )
        self.has_ready_check = model_object.has_ready_check(self._model)
        if self.has_ready_check:
            readiness = Readiness(self._model, channel, self._coroutines)
            channel.on(Kind.QUERY, readiness.enqueue)
            readiness.start()
            self.host.listen()
        # The garbage collector need not examine objects that exist now.
        gc.collect()
        gc.freeze()
        self.host.executing = True

    def finalize(self) -> None:
        """Finalize the model. Errors are logged."""
        self.host.executing = False
        self._coroutines.stop()
        try:
            model_object.finalize(self._model)
        except BaseException as error:  # including SystemExit
            self.host.log("INFO", describe_error(error))
