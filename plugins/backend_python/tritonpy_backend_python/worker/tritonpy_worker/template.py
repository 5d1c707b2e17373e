"""The process that imports a model's code once, and of which workers are made."""

from __future__ import annotations

import gc
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from . import forkable
from . import host as hosts
from .answers import Answers
from .api.errors import ErrorCode
from .channel_host import ChannelHost
from .completion import complete, in_fork
from .failure import Refused, describe
from .ipc import VERSION, Frame, Kind
from .ipc.channel import Channel
from .ipc.lifeline import Lifeline
from .ipc.waiter import Waiter
from .model_file import load_class
from .output import Output


class Template:
    """Answers "auto_complete", "fork" and "become", in the main thread. There is no other thread: it must stay fit to be forked."""

    def __init__(self, channel: Channel, lifeline: Lifeline, output: Output) -> None:
        self._channel = channel
        self._output = output
        self._lifeline = lifeline
        self._inbox: deque[Frame] = deque()
        self._waiter = Waiter()
        self._children: set[int] = set()
        self._randomness = forkable.Randomness()
        self._unforkable = ""
        for kind in (Kind.START, Kind.ASK, Kind.STOP):
            channel.on(kind, self._inbox.append)

    def run(self) -> int | None:
        """Serve until the server stops it, and return None; or the descriptor of a socket, where this process is a worker from now on."""
        start = self._next()
        for pipe in start.take_descriptors():
            self._lifeline.hold(pipe)
        before = forkable.threads()
        try:
            module = self._import(start.extras)
        except BaseException as error:  # SystemExit as well
            self._output.end_lines()
            self._channel.send(Kind.FAILED, extras=_told(error))
            return None
        self._output.end_lines()
        self._randomness.settle()
        self._unforkable = forkable.unforkable(before)
        signal.signal(signal.SIGCHLD, lambda *_: self._reap())
        gc.collect()
        gc.freeze()
        self._channel.send(Kind.STARTED, extras={"pid": os.getpid(), "unforkable": self._unforkable})
        return self._serve(module)

    def _serve(self, module: Any) -> int | None:
        while (frame := self._next()).kind == Kind.ASK:
            verb, arguments = frame.extras["verb"], frame.extras["arguments"]
            if verb == "auto_complete":
                self._complete(frame, module, arguments["name"], arguments["config"])
            elif self._be_worker(verb, frame):
                return self._own(frame)
        return None

    def _complete(self, frame: Frame, module: Any, name: str, config: str) -> None:
        def act() -> str:
            try:
                return complete(module, name, config)
            finally:
                self._output.end_lines()

        # What it does to the process must not be seen by the instances, as in Triton, where it has a process of its own.
        self._reply(frame, act if self._unforkable else lambda: in_fork(act))

    def _be_worker(self, verb: str, frame: Frame) -> bool:
        """Make a worker; say whether it is this process."""
        if verb == "fork":
            pid = forkable.fork()
            if pid == 0:
                self._randomness.part()
                return True
            self._children.add(pid)
            for descriptor in frame.take_descriptors():  # the worker's alone: the server must see their end
                os.close(descriptor)
            self._reply(frame, lambda: {"pid": pid})
            self._reap()  # it may have ended before it was known
            return False
        self._lifeline.forget()  # the server cuts it as soon as it hears
        self._reply(frame, dict)
        self._channel.close()
        return True

    @staticmethod
    def _own(frame: Frame) -> int:
        """Take what came for the worker; return its socket."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        connection, output = frame.take_descriptors()
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        return connection

    def _import(self, start: Mapping[str, Any]) -> Any:
        if start["version"] != VERSION:
            raise Refused(f"the worker speaks version {VERSION} of the protocol, the server version {start['version']}")
        name, folder = start["name"], os.path.dirname(start["model_file"])
        # Code that runs while it is imported may log; anything else waits for an instance.
        hosts.set_process_host(ChannelHost(self._channel, name, folder, False, Answers(self._channel, name)))
        return load_class(start["model_file"], start["backend_directory"])[0]

    def _reap(self) -> None:
        """Tell the server which workers ended, and how. Runs as a signal handler too."""
        for pid in tuple(self._children):
            try:
                ended, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:  # the handler came in the middle of this
                continue
            if ended:
                self._children.discard(pid)
                arguments = {"pid": pid, "status": os.waitstatus_to_exitcode(status)}
                self._channel.send(Kind.TELL, extras={"verb": "exited", "arguments": arguments})

    def _reply(self, frame: Frame, answer: Callable[[], Any]) -> None:
        try:
            extras = {"value": answer()}
        except BaseException as error:  # SystemExit as well
            told = _told(error)
            extras = {"error": [told["code"], told["message"]]}
        self._output.end_lines()
        self._channel.send(Kind.REPLY, [frame.words[0]], extras=extras)

    def _next(self) -> Frame:
        self._channel.wait(self._waiter, self._inbox.__len__)
        return self._inbox.popleft()


def _told(error: BaseException) -> dict[str, Any]:
    return {"message": describe(error), "code": int(ErrorCode.INTERNAL)}
