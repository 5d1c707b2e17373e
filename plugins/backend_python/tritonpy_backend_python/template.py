"""The process that has imported a model's code once, seen from the server."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from tritonpy import Code, Internal, ModelContext, SpawnedProcess, TritonError, WorkerProcess, error_of
from tritonpy.ipc import Frame, Kind
from tritonpy.ipc.channel import Channel, ChannelClosed
from tritonpy.ipc.questions import Questions
from tritonpy.ipc.waiter import Waiter
from tritonpy_backend_python.arguments import model_message
from tritonpy_backend_python.environments import Environment
from tritonpy_backend_python.forked import ForkedProcess
from tritonpy_backend_python.printed import Printed
from tritonpy_backend_python.worker_folder import WORKER_FOLDER

_END_S = 2.0  # for the process to end by itself once its socket is closed


class TemplateLostError(Internal):
    """The template process is gone."""


class Template:
    """Completes the configuration, and then becomes the only instance, or forks each of several.

    Called from loading threads, which wait for it. `unforkable` is empty, or says why it must not be forked: importing the model started
    threads or a GPU. Raises what importing the model raised, in Triton's words.
    """

    def __init__(self, model: ModelContext, environment: Environment) -> None:
        self._model = model
        self._name = model.name
        self._cancellation = model.cancellation
        self._lock = threading.Lock()
        self._first: list[Frame] = []
        self._statuses: dict[int, int] = {}
        self._lost = False
        self._lifeline = -1
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        self._printed = Printed(read, model.log)
        with theirs:
            try:
                command = environment.command([str(WORKER_FOLDER), str(theirs.fileno()), "template"])
                self._process = SpawnedProcess.start(command, theirs, write, environment.process_variables())
            except BaseException:
                ours.close()
                raise
            finally:
                os.close(write)
        self._channel = Channel(ours, self._end)
        self._questions = Questions(self._channel)
        for kind in (Kind.STARTED, Kind.FAILED):
            self._channel.on(kind, self._first.append)
        self._channel.on(Kind.TELL, self._told)
        self._channel.on(Kind.ASK, self._refuse)
        try:
            with model.cancellation.calling(self._process.kill):
                self.unforkable = self._import(model)
        except BaseException:
            self.close()
            raise

    def auto_complete(self, config: str) -> str:
        """Return the configuration, as JSON, as `auto_complete_config` leaves it. Raises what it raised."""
        with self._cancellation.calling(self._process.kill):
            return str(self._ask("auto_complete", {"name": self._name, "config": config}))

    def fork(self, connection: socket.socket, output: int) -> WorkerProcess:
        """Return a new worker that has the code imported. Raises TemplateLostError."""
        said = self._ask("fork", {}, (os.dup(connection.fileno()), os.dup(output)))
        return ForkedProcess(said["pid"], self._status)

    def become(self, connection: socket.socket, output: int) -> WorkerProcess:
        """Return the template's own process as a worker; there is no template any more. Raises TemplateLostError."""
        self._ask("become", {}, (os.dup(connection.fileno()), os.dup(output)))
        self._let_go()
        self._printed.wait(_END_S)
        return self._process

    def close(self) -> None:
        """End the process; workers that it forked live on."""
        with suppress(ChannelClosed, TemplateLostError):
            self._channel.send(Kind.STOP)
        self._let_go()
        if self._process.wait(_END_S) is None:
            self._process.kill()
            self._process.wait(_END_S)
        self._printed.wait(_END_S)

    def _let_go(self) -> None:
        self._channel.close()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def _import(self, model: ModelContext) -> str:
        tied, self._lifeline = os.pipe()  # the process ends with the server, even while it imports
        extras = {**model_message(model), "kind": "template"}
        self._channel.send(Kind.START, extras=extras, descriptors=(tied,))
        self._channel.wait(Waiter(), self._first.__len__)
        said = self._first[0].extras
        if self._first[0].kind == Kind.FAILED:
            raise error_of(said["code"], said["message"])
        return str(said.get("unforkable", ""))

    def _ask(self, verb: str, arguments: dict[str, Any], descriptors: Sequence[int] = ()) -> Any:
        with self._lock:  # one question at a time: when the process dies, there is nobody else to wake
            if self._lost:
                for descriptor in descriptors:
                    os.close(descriptor)
                raise TemplateLostError(f"the process of model '{self._name}' is gone")
            said = self._questions.ask(verb, arguments, descriptors).extras
        if "error" in said:
            raise error_of(*said["error"])
        return said["value"]

    def _told(self, frame: Frame) -> None:
        verb, arguments = frame.extras["verb"], frame.extras["arguments"]
        if verb == "exited":
            self._statuses[arguments["pid"]] = arguments["status"]
        elif verb == "log":
            self._model.log.info("%s", arguments["message"])

    def _refuse(self, frame: Frame) -> None:
        text = "the server can not be asked while a model is imported or its configuration completed"
        self._channel.send(Kind.REPLY, [frame.words[0]], extras={"error": [int(Code.UNSUPPORTED), text]})

    def _status(self, pid: int) -> int | None:
        """Return the exit status of a worker that has ended; None where the template is gone and nobody knows."""
        with suppress(TritonError), self._lock:
            if not self._lost:
                self._channel.lead(lambda: pid in self._statuses)
        return self._statuses.pop(pid, None)

    def _end(self, reason: str) -> NoReturn:
        self._lost = True
        status = self._process.wait(_END_S)
        self._printed.wait(_END_S)
        why = reason or f"it ended with status {status}"
        lines = [f"Stub process '{self._name}' is not healthy: {why}.", *self._printed.tail]
        raise TemplateLostError("\n".join(lines)) from Internal(why)
