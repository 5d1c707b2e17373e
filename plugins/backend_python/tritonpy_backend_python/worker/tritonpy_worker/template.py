"""The template process: imports a model's code once and becomes or forks workers."""

from __future__ import annotations

import gc
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from . import fork_safety
from . import host as hosts
from .api.errors import ErrorCode
from .channel_host import ChannelHost
from .completion import complete, run_in_fork
from .failure import ModelContractError, describe_error
from .ipc import VERSION, Frame, Kind
from .ipc.channel import Channel
from .ipc.parent_watch import ParentWatcher
from .ipc.waiter import Waiter
from .model_file import load_class
from .output import Output
from .response_frame import ResponseFrame


class Template:
    """Handles the queries "auto_complete", "fork" and "become" in the main thread.

    The process has no other thread, so that it can fork safely.
    """

    def __init__(self, channel: Channel, parent_watcher: ParentWatcher, output: Output) -> None:
        self._channel = channel
        self._output = output
        self._parent_watcher = parent_watcher
        self._inbox: deque[Frame] = deque()
        self._waiter = Waiter()
        self._children: set[int] = set()
        self._random_state = fork_safety.RandomState()
        self._fork_obstacle = ""
        for kind in (Kind.START, Kind.QUERY, Kind.STOP):
            channel.on(kind, self._inbox.append)

    def run(self) -> int | None:
        """Serve until the server stops the process, and return None.

        If the process becomes a worker, return the descriptor of its socket.
        """
        start = self._next()
        for pipe in start.take_descriptors():
            self._parent_watcher.watch_pipe(pipe)
        before = fork_safety.threads()
        try:
            module = self._import(start.extras)
        except BaseException as error:  # including SystemExit
            self._output.end_lines()
            self._channel.send(Kind.FAILED, extras=_error_extras(error))
            return None
        self._output.end_lines()
        self._random_state.detect_seeding()
        self._fork_obstacle = fork_safety.fork_obstacle(before)
        signal.signal(signal.SIGCHLD, lambda *_: self._reap())
        gc.collect()
        gc.freeze()
        self._channel.send(
            Kind.STARTED, extras={"pid": os.getpid(), "unforkable": self._fork_obstacle}
        )
        return self._serve(module)

    def _serve(self, module: Any) -> int | None:
        while (frame := self._next()).kind == Kind.QUERY:
            verb, arguments = frame.extras["verb"], frame.extras["arguments"]
            if verb == "auto_complete":
                self._complete(frame, module, arguments["name"], arguments["config"])
            elif self._make_worker(verb, frame):
                return self._take_over(frame)
        return None

    def _complete(self, frame: Frame, module: Any, name: str, config: str) -> None:
        def act() -> str:
            try:
                return complete(module, name, config)
            finally:
                self._output.end_lines()

        # In a fork if possible: instances must not see its side effects. Triton, too, uses a
        # separate process.
        self._reply(frame, act if self._fork_obstacle else lambda: run_in_fork(act))

    def _make_worker(self, verb: str, frame: Frame) -> bool:
        """Create a worker. Return true if it is this process."""
        if verb == "fork":
            pid = fork_safety.fork()
            if pid == 0:
                self._random_state.reseed()
                return True
            self._children.add(pid)
            # Only the worker may keep these open, so that the server notices when it ends.
            for descriptor in frame.take_descriptors():
                os.close(descriptor)
            self._reply(frame, lambda: {"pid": pid})
            self._reap()  # it may have ended before it was recorded
            return False
        self._parent_watcher.close_pipe()  # the server closes it after the reply
        self._reply(frame, dict)
        self._channel.close()
        return True

    @staticmethod
    def _take_over(frame: Frame) -> int:
        """Redirect the output to the worker's descriptor. Return the descriptor of its socket."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        connection, output = frame.take_descriptors()
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        return connection

    def _import(self, start: Mapping[str, Any]) -> Any:
        if start["version"] != VERSION:
            raise ModelContractError(
                f"the worker uses version {VERSION} of the protocol, the server version "
                f"{start['version']}"
            )
        name, folder = start["name"], os.path.dirname(start["model_file"])
        # Code that runs during the import may log. Everything else needs an instance.
        hosts.set_process_host(
            ChannelHost(self._channel, name, folder, False, ResponseFrame(self._channel, name))
        )
        return load_class(start["model_file"], start["backend_directory"])[0]

    def _reap(self) -> None:
        """Report ended workers and their statuses to the server. Also runs as a signal handler."""
        for pid in tuple(self._children):
            try:
                ended, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:  # the signal handler interrupted this loop
                continue
            if ended:
                self._children.discard(pid)
                arguments = {"pid": pid, "status": os.waitstatus_to_exitcode(status)}
                self._channel.send(Kind.NOTIFY, extras={"verb": "exited", "arguments": arguments})

    def _reply(self, frame: Frame, answer: Callable[[], Any]) -> None:
        try:
            extras = {"value": answer()}
        except BaseException as error:  # including SystemExit
            failure = _error_extras(error)
            extras = {"error": [failure["code"], failure["message"]]}
        self._output.end_lines()
        self._channel.send(Kind.QUERY_RESULT, [frame.words[0]], extras=extras)

    def _next(self) -> Frame:
        self._channel.wait(self._waiter, self._inbox.__len__)
        return self._inbox.popleft()


def _error_extras(error: BaseException) -> dict[str, Any]:
    return {"message": describe_error(error), "code": int(ErrorCode.INTERNAL)}
