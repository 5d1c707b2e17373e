"""The server's end of a worker process."""

from __future__ import annotations

import os
import select
import socket
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tritonpy.ipc import VERSION, Endpoint, Frame, Kind
from tritonpy.ipc.laden import write_laden
from tritonpy.ipc.progress import Progress
from tritonpy.ipc.windows import NOBODY
from tritonpy.types import DTYPES

PATIENCE_S = 30.0
FINAL, EMPTY = 1, 2


class Sent(NamedTuple):
    """A tensor as the endpoint takes and gives it."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: npt.NDArray[Any]


def fp32(name: str, *values: float) -> Sent:
    """Return a vector."""
    return Sent(name, "FP32", (len(values),), np.array(values, np.float32))


@dataclass
class Answer:
    """One answer of a request."""

    request: int
    outputs: dict[str, Any]
    final: bool
    empty: bool
    error: tuple[int, str] | None = None
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def message(self) -> str:
        assert self.error is not None, self
        return self.error[1]


@dataclass
class Call:
    """A request of the model to another one."""

    id: int
    execution: int
    request: int
    inputs: dict[str, Any]
    wanted: tuple[str, ...] | None
    said: dict[str, Any]


class Peer:
    """Speaks to one worker. Frames that a test does not ask for wait for it; nothing waits longer than PATIENCE_S seconds."""

    ASK, REPLY, CANCEL, CALL_CANCEL = Kind.ASK, Kind.REPLY, Kind.CANCEL, Kind.CALL_CANCEL
    STOP, STOPPED, TELL = Kind.STOP, Kind.STOPPED, Kind.TELL

    def __init__(self, model_file: Path, said: Mapping[str, Any], process: Callable[[socket.socket, int], Any]) -> None:
        """Speak to what `process(socket, output)` starts."""
        self._socket, theirs = socket.socketpair()
        self._output, write = os.pipe()
        self.process = process(theirs, write)
        theirs.close()
        os.close(write)
        os.set_blocking(self._output, False)
        self._model_file = model_file
        self._heirs: list[Peer] = []
        self.exited: dict[int, int] = {}
        self._endpoint = Endpoint(DTYPES)
        self._frames: deque[Frame] = deque()
        self._printed = b""
        self.logs: list[dict[str, Any]] = []
        self.answers: list[Answer] = []
        self.done: list[tuple[int, int, int]] = []
        self.calls: deque[Call] = deque()
        self.rooms: deque[tuple[int, int]] = deque()  # questions for room: their numbers and the requests
        self._fetched: set[int] = set()  # requests whose clients always have room
        self.rescheduled: list[int] = []
        self.taken: list[tuple[int, int]] = []  # calls, and how many answers of each were taken
        self.left: list[int] = []  # calls whose answers nobody waits for
        self.wanted: list[int] = []  # calls whose first answer somebody waits for
        self.answer_frames = 0
        self._execution = 0
        self._request = 0
        self._descriptors: tuple[int, ...] = tuple(said.get("descriptors", ()))
        self._start(model_file, {key: value for key, value in said.items() if key != "descriptors"})

    @classmethod
    def run(
        cls, command: Sequence[str], model_file: Path, env: Mapping[str, str] | None, said: Mapping[str, Any]
    ) -> Peer:
        """Start a command, which is given the number of its socket, or that and its role."""

        def process(theirs: socket.socket, output: int) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [*command[:2], str(theirs.fileno()), *command[2:]],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=None if env is None else {**os.environ, **env},
                start_new_session=True,
            )

        return cls(model_file, said, process)

    def heir(self, **said: Any) -> tuple[Peer, tuple[int, int]]:
        """Return the server's end of a worker that this process is to make, and the descriptors to send it."""
        sent: list[int] = []

        def process(theirs: socket.socket, output: int) -> None:
            sent.extend((os.dup(theirs.fileno()), os.dup(output)))

        self._heirs.append(Peer(self._model_file, said, process))
        return self._heirs[-1], (sent[0], sent[1])

    def ask(self, verb: str, descriptors: Sequence[int] = (), **arguments: Any) -> dict[str, Any]:
        """Ask the process and return its reply."""
        self.send(Kind.ASK, [7], extras={"verb": verb, "arguments": arguments}, descriptors=descriptors)
        reply = self.frame(Kind.REPLY)
        assert reply.words == (7,)
        return reply.extras

    def _start(self, model_file: Path, said: Mapping[str, Any]) -> None:
        args = {
            "model_config": "{}",
            "model_instance_kind": "CPU",
            "model_instance_name": "m_0_0",
            "model_instance_device_id": "0",
            "model_repository": str(model_file.parent.parent),
            "model_version": "1",
            "model_name": "m",
        }
        start = {
            "version": VERSION,
            "kind": "python",
            "args": args,
            "model_file": str(model_file),
            "model_version": "1",
            "backend_directory": "",
            "decoupled": False,
            "outputs": ["OUT"],
            "memory_limit": 0,
            "execution_limit": False,
        }
        start.update(said)
        progress = () if start["kind"] == "template" else (Progress.create(),)
        self.send(Kind.START, extras=start, descriptors=(*progress, *self._descriptors))

    def send(self, kind: int, *args: Any, **more: Any) -> None:
        """Send a frame."""
        data, fresh = self._endpoint.compose(kind, *args, **more)
        sent = socket.send_fds(self._socket, [data], fresh) if fresh else 0
        if data[sent:]:
            self._socket.sendall(data[sent:])
        for descriptor in fresh:
            os.close(descriptor)

    def frame(self, *kinds: int) -> Frame:
        """Return the next frame of one of these kinds; others are sorted into the lists of this object."""
        while True:
            frame = self._next()
            if frame.kind in kinds:
                return frame
            self._sort(frame)

    def started(self) -> dict[str, Any]:
        """Wait for STARTED and return what it says."""
        frame = self.frame(Kind.STARTED, Kind.FAILED)
        assert frame.kind == Kind.STARTED, frame.extras
        return frame.extras

    def failed(self) -> str:
        """Wait for FAILED and return its text."""
        frame = self.frame(Kind.STARTED, Kind.FAILED)
        assert frame.kind == Kind.FAILED, frame.extras
        return frame.extras["message"]

    def send_batches(self, *batches: Sequence[Sequence[Sent]], wants: Any = None, **extras: Any) -> int:
        """Send executions in one frame, each a list of requests, which are lists of tensors; return the number of the first request."""
        first = self._request
        words = [len(batches)]
        rows = []
        for batch in batches:
            self._execution += 1
            words += (self._execution, len(batch))
            rows += batch
        self._request += len(rows)
        laden = extras.pop("laden", None)
        if laden is None:
            self.send(Kind.EXECUTE, [*words, first], rows, wants, extras)
        else:
            more, texts = write_laden(laden)
            rows += extras.pop("added_rows", ())
            self.send(Kind.EXECUTE_LADEN, [*words, first, *more], rows, wants, {**extras, "sequences": texts})
        return first

    def execute(self, *requests: Sequence[Sent], **extras: Any) -> list[Answer]:
        """Run one batch and return the answers of its requests when the execution is over and each has its final one."""
        before = len(self.answers)
        first = self.send_batches(requests, **extras)
        execution = self._execution
        numbers = range(first, first + len(requests))
        while execution not in [each for each, _, _ in self.done] or not all(
            any(each.request == number and each.final for each in self.answers) or number in self.rescheduled
            for number in numbers
        ):
            self.step()
        return [each for each in self.answers[before:] if each.request in numbers]

    def until_answered(self, count: int) -> list[Answer]:
        """Wait until `count` answers have come since the start."""
        while len(self.answers) < count:
            self.step()
        return self.answers

    def until_logged(self, text: str) -> dict[str, Any]:
        """Wait for a log line with `text` in it."""
        while True:
            found = [log for log in self.logs if text in log["message"]]
            if found:
                return found[0]
            self.step()

    def call(self) -> Call:
        """Wait for a call of the model."""
        while not self.calls:
            self.step()
        return self.calls.popleft()

    def answer_call(self, call: Call, outputs: Sequence[Sent] | None, final: bool = True, **extras: Any) -> None:
        """Answer it; None is an answer without a response."""
        flags = (FINAL if final else 0) | (EMPTY if outputs is None else 0)
        self.send(Kind.CALL_ANSWER, [call.id, flags], [outputs or ()], None, extras)

    def room_asked(self) -> int:
        """Wait until the worker asks whether there is room; return the request that it wants it for."""
        while not self.rooms:
            self.step()
        return self.rooms[0][1]

    def grant(self) -> int:
        """Say yes to the oldest such question; return its request."""
        request = self.room_asked()
        self.send(Kind.REPLY, [self.rooms.popleft()[0]], extras={"value": None})
        return request

    def fetch(self, request: int) -> None:
        """Have room for that request, now and later."""
        self._fetched.add(request)
        for number, asked in [each for each in self.rooms if each[1] == request]:
            self.rooms.remove((number, asked))
            self.send(Kind.REPLY, [number], extras={"value": None})

    def step(self) -> None:
        """Handle what comes next: a frame, or memory that goes back."""
        if not self._frames:
            self._receive()
        if self._frames:
            self._sort(self._frames.popleft())

    def ended(self) -> int:
        """Wait for the end of the process and return its status."""
        return self.process.wait(PATIENCE_S)

    def stop(self) -> int:
        """Ask the worker to stop; return its exit status."""
        self.send(Kind.STOP)
        self.frame(Kind.STOPPED)
        return self.ended()

    def printed(self) -> str:
        """Return what went to the process's own streams, once it has ended."""
        self.ended()
        with suppress(BlockingIOError):  # a process that the model started may still hold them
            while data := os.read(self._output, 1 << 16):
                self._printed += data
        return self._printed.decode()

    def next_printed(self) -> str:
        """Wait for something on the process's own streams."""
        self.wait_for(self._output)
        return os.read(self._output, 1 << 16).decode()

    @staticmethod
    def wait_for(descriptor: int) -> None:
        """Wait until it can be read."""
        assert select.select([descriptor], [], [], PATIENCE_S)[0]

    def close(self) -> None:
        """Leave nothing behind."""
        for heir in self._heirs:
            heir.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self._socket.close()
        self._endpoint.close()
        os.close(self._output)

    def parcels(self) -> int:
        """Return how many pieces of shared memory this end ever made for tensors."""
        return self._endpoint._lender._next - 1

    def lent(self) -> int:
        """Return how many of them the worker has."""
        return len(self._endpoint._lender._lent)

    def hang_up(self) -> None:
        """Close the socket, as the end of the server would."""
        self._socket.close()

    def _next(self) -> Frame:
        while not self._frames:
            self._receive()
        return self._frames.popleft()

    def _receive(self) -> None:
        readable, _, _ = select.select([self._socket], [], [], PATIENCE_S)
        assert readable, f"the worker says nothing; before that: {self.logs}"
        data, descriptors, _, _ = socket.recv_fds(self._socket, 1 << 18, 16)
        if not data:
            raise EOFError(f"the worker ended: {self.ended()}\n{self.printed()}")
        self._frames += self._endpoint.feed(data, descriptors)

    def _sort(self, frame: Frame) -> None:
        if frame.kind == Kind.ANSWERS:
            self._take_answers(frame)
        elif frame.kind == Kind.CALL:
            rows, wants = self._endpoint.rows(frame, 3, Sent)
            inputs = {each.name: each.data for each in rows[0]}
            self.calls.append(Call(*frame.words[:3], inputs, wants[0], frame.extras))
        elif frame.kind == Kind.ASK and frame.extras["verb"] == "room":
            self.rooms.append((frame.words[0], frame.extras["arguments"]["request"]))
            if self.rooms[-1][1] in self._fetched | {NOBODY}:
                self.send(Kind.REPLY, [self.rooms.pop()[0]], extras={"value": None})
        elif frame.kind == Kind.CALL_TAKEN:
            self.taken.append((frame.words[0], frame.words[1]))
        elif frame.kind in (Kind.CALL_LEFT, Kind.CALL_WANTED):
            (self.left if frame.kind == Kind.CALL_LEFT else self.wanted).append(frame.words[0])
        elif frame.kind == Kind.TELL and frame.extras["verb"] == "log":
            self.logs.append(frame.extras["arguments"])
        elif frame.kind == Kind.TELL and frame.extras["verb"] == "exited":
            arguments = frame.extras["arguments"]
            self.exited[arguments["pid"]] = arguments["status"]
        else:
            raise AssertionError(f"a frame of kind {frame.kind} came: {frame.extras}")

    def _take_answers(self, frame: Frame) -> None:
        self.answer_frames += 1
        words, extras = frame.words, frame.extras
        at = 1 + 3 * words[0]
        self.done += [tuple(words[index : index + 3]) for index in range(1, at, 3)]
        runs = words[at]
        rows, _ = self._endpoint.rows(frame, at + 1 + 3 * runs, Sent)
        flags = [
            (number, words[index + 2])
            for index in range(at + 1, at + 1 + 3 * runs, 3)
            for number in range(words[index], words[index] + words[index + 1])
        ]
        for index, ((number, flag), row) in enumerate(zip(flags, rows, strict=True)):
            error = extras.get("errors", {}).get(str(index))
            self.answers.append(
                Answer(
                    number,
                    {each.name: each.data for each in row},
                    bool(flag & FINAL),
                    bool(flag & EMPTY),
                    None if error is None else tuple(error),
                    extras.get("parameters", {}).get(str(index), {}),
                )
            )
        self.rescheduled += extras.get("reschedule", ())
