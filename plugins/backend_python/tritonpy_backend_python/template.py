"""The server's side of the template process, which imports a model's code once."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from tritonpy import Code, Internal, ModelContext, TritonError, error_of
from tritonpy.execution import SpawnedProcess, WorkerProcess
from tritonpy_backend_python.arguments import model_message
from tritonpy_backend_python.environments import Environment
from tritonpy_backend_python.forked_process import ForkedProcess
from tritonpy_backend_python.process_output import ProcessOutput
from tritonpy_backend_python.worker_folder import WORKER_FOLDER
from tritonpy_ipc import Frame, Kind
from tritonpy_ipc.channel import Channel, ChannelClosed
from tritonpy_ipc.rpc_client import RpcClient
from tritonpy_ipc.waiter import Waiter

_END_S = 2.0  # wait for the process to end by itself after its socket is closed


class TemplateLostError(Internal):
    """The template process has ended."""


class Template:
    """A process that imports a model's code and completes its configuration.

    Then it becomes the only worker, or forks several workers. Loading threads call the methods and
    wait. `fork_obstacle` is the reason why the process must not be forked, or empty. A reason is
    that importing the model started threads or opened a GPU. Raises exceptions of the import with
    Triton's texts.
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
        self._process_output = ProcessOutput(read, model.log)
        with theirs:
            try:
                command = environment.command(
                    [str(WORKER_FOLDER), str(theirs.fileno()), "template"]
                )
                self._process = SpawnedProcess.start(
                    command, theirs, write, environment.process_variables()
                )
            except BaseException:
                ours.close()
                raise
            finally:
                os.close(write)
        self._channel = Channel(ours, self._end)
        self._rpc_client = RpcClient(self._channel)
        for kind in (Kind.STARTED, Kind.FAILED):
            self._channel.on(kind, self._first.append)
        self._channel.on(Kind.NOTIFY, self._on_notification)
        self._channel.on(Kind.QUERY, self._refuse)
        try:
            with model.cancellation.calling(self._process.kill):
                self.fork_obstacle = self._import(model)
        except BaseException:
            self.close()
            raise

    def auto_complete(self, config: str) -> str:
        """Return the JSON configuration after `auto_complete_config`.

        Raises the model's exceptions.
        """
        with self._cancellation.calling(self._process.kill):
            return str(self._query("auto_complete", {"name": self._name, "config": config}))

    def fork(self, connection: socket.socket, output: int) -> WorkerProcess:
        """Return a new worker with the imported code. Raises `TemplateLostError`."""
        reply = self._query("fork", {}, (os.dup(connection.fileno()), os.dup(output)))
        return ForkedProcess(reply["pid"], self._status)

    def become(self, connection: socket.socket, output: int) -> WorkerProcess:
        """Turn the template process into a worker and return it.

        The template cannot be used afterwards. Raises `TemplateLostError`.
        """
        self._query("become", {}, (os.dup(connection.fileno()), os.dup(output)))
        self._disconnect()
        self._process_output.wait(_END_S)
        return self._process

    def close(self) -> None:
        """End the process. Workers that it forked keep running."""
        with suppress(ChannelClosed, TemplateLostError):
            self._channel.send(Kind.STOP)
        self._disconnect()
        if self._process.wait(_END_S) is None:
            self._process.kill()
            self._process.wait(_END_S)
        self._process_output.wait(_END_S)

    def _disconnect(self) -> None:
        self._channel.close()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def _import(self, model: ModelContext) -> str:
        tied, self._lifeline = os.pipe()  # the process ends with the server, even during the import
        extras = {**model_message(model), "kind": "template"}
        self._channel.send(Kind.START, extras=extras, descriptors=(tied,))
        self._channel.wait(Waiter(), self._first.__len__)
        reply = self._first[0].extras
        if self._first[0].kind == Kind.FAILED:
            raise error_of(reply["code"], reply["message"])
        return str(reply.get("unforkable", ""))

    def _query(self, verb: str, arguments: dict[str, Any], descriptors: Sequence[int] = ()) -> Any:
        # One query at a time, so that the end of the process concerns one thread only.
        with self._lock:
            if self._lost:
                for descriptor in descriptors:
                    os.close(descriptor)
                raise TemplateLostError(f"the process of model '{self._name}' is gone")
            reply = self._rpc_client.call(verb, arguments, descriptors).extras
        if "error" in reply:
            raise error_of(*reply["error"])
        return reply["value"]

    def _on_notification(self, frame: Frame) -> None:
        verb, arguments = frame.extras["verb"], frame.extras["arguments"]
        if verb == "exited":
            self._statuses[arguments["pid"]] = arguments["status"]
        elif verb == "log":
            self._model.log.info("%s", arguments["message"])

    def _refuse(self, frame: Frame) -> None:
        text = (
            "the server cannot be called while a model is imported or its configuration is "
            "completed"
        )
        self._channel.send(
            Kind.QUERY_RESULT, [frame.words[0]], extras={"error": [int(Code.UNSUPPORTED), text]}
        )

    def _status(self, pid: int) -> int | None:
        """Return the exit status of a worker that has ended, or None if the template is gone."""
        with suppress(TritonError), self._lock:
            if not self._lost:
                self._channel.read_until(lambda: pid in self._statuses)
        return self._statuses.pop(pid, None)

    def _end(self, reason: str) -> NoReturn:
        self._lost = True
        status = self._process.wait(_END_S)
        self._process_output.wait(_END_S)
        why = reason or f"it ended with status {status}"
        lines = [f"Stub process '{self._name}' is not healthy: {why}.", *self._process_output.tail]
        raise TemplateLostError("\n".join(lines)) from Internal(why)
