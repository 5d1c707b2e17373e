"""A model instance: its object, made and initialized, and what serves it."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from typing import Any

from . import host as hosts
from . import memory, model_object
from .answers import Answers
from .channel_host import ChannelHost
from .coroutines import Coroutines
from .execution import Executor
from .failure import Refused, describe
from .frame_sink import FrameSink
from .ipc import VERSION, Kind
from .ipc.channel import Channel
from .model_file import load_class
from .readiness import Readiness
from .unchecked_strings import UncheckedStrings


class Instance:
    """What START asks for. Raises Refused, and what the model raises when it is imported, made or initialized."""

    def __init__(self, start: Mapping[str, Any], channel: Channel) -> None:
        if start["version"] != VERSION:
            raise Refused(f"the worker speaks version {VERSION} of the protocol, the server version {start['version']}")
        args = start["args"]
        name = args["model_instance_name"]
        self.outputs: tuple[str, ...] = tuple(start["outputs"])
        self.answers = Answers(channel, name)
        self.host = ChannelHost(channel, name, os.path.dirname(start["model_file"]), start["decoupled"], self.answers)
        self._coroutines = Coroutines()
        if start["decoupled"]:
            self._coroutines.pace()
        if start["execution_limit"]:
            self._coroutines.await_begin()
        hosts.set_process_host(self.host)
        if start["memory_limit"]:
            memory.limit(start["memory_limit"])
        reserve = memory.Reserve()
        module, path = load_class(start["model_file"], start["backend_directory"])
        self._model = model_object.make(module, args)
        self.sink = sink = FrameSink(self.host, self.answers)
        self.strings = UncheckedStrings(args["model_name"], sink)
        self.executor = Executor(self._model, path, name, start["decoupled"], sink, self._coroutines, reserve)
        self.asks_ready = model_object.asks_ready(self._model)
        if self.asks_ready:
            readiness = Readiness(self._model, channel, self._coroutines)
            channel.on(Kind.ASK, readiness.asked)
            readiness.start()
            self.host.listen()
        # What exists now stays: the collector need not look at it again and again.
        gc.collect()
        gc.freeze()
        self.host.executing = True

    def finalize(self) -> None:
        """Let the model clean up; what goes wrong is logged."""
        self.host.executing = False
        self._coroutines.stop()
        try:
            model_object.finalize(self._model)
        except BaseException as error:  # SystemExit as well
            self.host.log("INFO", describe(error))
