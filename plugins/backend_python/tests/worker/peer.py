"""The server's side of a worker's connection."""

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

from tritonpy_ipc import VERSION, Endpoint, Frame, Kind
from tritonpy_ipc.progress import Progress
from tritonpy_ipc.sequence_frame import write_sequence_frame
from tritonpy_ipc.windows import NO_REQUEST
from tritonpy_types import DTYPES

WAIT_S = 30.0
FINAL, EMPTY = 1, 2


class Sent(NamedTuple):
    """A tensor as the endpoint sends and receives it."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: npt.NDArray[Any]


def fp32(name: str, *values: float) -> Sent:
    """Return a vector."""
    return Sent(name, "FP32", (len(values),), np.array(values, np.float32))


@dataclass
class Answer:
    """A response of a request."""

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
    """A request of the model to another model."""

    id: int
    execution: int
    request: int
    inputs: dict[str, Any]
    output_names: tuple[str, ...] | None
    details: dict[str, Any]


class Peer:
    """The connection to one worker.

    Frames are queued until a test needs them; waits end after WAIT_S seconds.
    """

    QUERY, QUERY_RESULT, CANCEL, CALL_CANCEL = (
        Kind.QUERY,
        Kind.QUERY_RESULT,
        Kind.CANCEL,
        Kind.CALL_CANCEL,
    )
    STOP, STOPPED, NOTIFY = Kind.STOP, Kind.STOPPED, Kind.NOTIFY

    def __init__(
        self,
        model_file: Path,
        options: Mapping[str, Any],
        process: Callable[[socket.socket, int], Any],
    ) -> None:
        """Connect to the process that `process(socket, output)` starts."""
        self._socket, theirs = socket.socketpair()
        self._output, write = os.pipe()
        self.process = process(theirs, write)
        theirs.close()
        os.close(write)
        os.set_blocking(self._output, False)
        self._model_file = model_file
        self._prepared: list[Peer] = []
        self.exited: dict[int, int] = {}
        self._endpoint = Endpoint(DTYPES)
        self._frames: deque[Frame] = deque()
        self._printed = b""
        self.logs: list[dict[str, Any]] = []
        self.answers: list[Answer] = []
        self.done: list[tuple[int, int, int]] = []
        self.calls: deque[Call] = deque()
        # Queries for room: their numbers and requests.
        self.room_queries: deque[tuple[int, int]] = deque()
        self._fetched: set[int] = set()  # requests whose clients always fetch
        self.rescheduled: list[int] = []
        self.taken: list[tuple[int, int]] = []  # calls, and the number of responses taken of each
        self.left: list[int] = []  # calls whose responses are dropped
        self.output_names: list[int] = []  # calls with a thread that waits for the first response
        self.answer_frames = 0
        self._execution = 0
        self._request = 0
        self._descriptors: tuple[int, ...] = tuple(options.get("descriptors", ()))
        self._start(
            model_file, {key: value for key, value in options.items() if key != "descriptors"}
        )

    @classmethod
    def run(
        cls,
        command: Sequence[str],
        model_file: Path,
        env: Mapping[str, str] | None,
        options: Mapping[str, Any],
    ) -> Peer:
        """Start a command with the number of its socket, and its role if any, as arguments."""

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

        return cls(model_file, options, process)

    def prepare_worker(self, **options: Any) -> tuple[Peer, tuple[int, int]]:
        """Return the server's side of a worker to be created, and the descriptors for it."""
        sent: list[int] = []

        def process(theirs: socket.socket, output: int) -> None:
            sent.extend((os.dup(theirs.fileno()), os.dup(output)))

        self._prepared.append(Peer(self._model_file, options, process))
        return self._prepared[-1], (sent[0], sent[1])

    def query(self, verb: str, descriptors: Sequence[int] = (), **arguments: Any) -> dict[str, Any]:
        """Send a query to the process and return its reply."""
        self.send(
            Kind.QUERY, [7], extras={"verb": verb, "arguments": arguments}, descriptors=descriptors
        )
        reply = self.frame(Kind.QUERY_RESULT)
        assert reply.words == (7,)
        return reply.extras

    def _start(self, model_file: Path, options: Mapping[str, Any]) -> None:
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
        start.update(options)
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
        """Return the next frame of these kinds. Others go into the lists of this object."""
        while True:
            frame = self._next()
            if frame.kind in kinds:
                return frame
            self._sort(frame)

    def started(self) -> dict[str, Any]:
        """Wait for STARTED and return its contents."""
        frame = self.frame(Kind.STARTED, Kind.FAILED)
        assert frame.kind == Kind.STARTED, frame.extras
        return frame.extras

    def failed(self) -> str:
        """Wait for FAILED and return its text."""
        frame = self.frame(Kind.STARTED, Kind.FAILED)
        assert frame.kind == Kind.FAILED, frame.extras
        return frame.extras["message"]

    def send_batches(
        self, *batches: Sequence[Sequence[Sent]], requested: Any = None, **extras: Any
    ) -> int:
        """Send executions in one frame and return the number of the first request.

        An execution is a list of requests, which are lists of tensors.
        """
        first = self._request
        words = [len(batches)]
        rows = []
        for batch in batches:
            self._execution += 1
            words += (self._execution, len(batch))
            rows += batch
        self._request += len(rows)
        sequence_frames = extras.pop("sequence_frames", None)
        if sequence_frames is None:
            self.send(Kind.EXECUTE, [*words, first], rows, requested, extras)
        else:
            more, texts = write_sequence_frame(sequence_frames)
            rows += extras.pop("added_rows", ())
            self.send(
                Kind.EXECUTE_SEQUENCE,
                [*words, first, *more],
                rows,
                requested,
                {**extras, "sequences": texts},
            )
        return first

    def execute(self, *requests: Sequence[Sent], **extras: Any) -> list[Answer]:
        """Execute a batch and return all responses of its requests."""
        before = len(self.answers)
        first = self.send_batches(requests, **extras)
        execution = self._execution
        numbers = range(first, first + len(requests))
        while execution not in [each for each, _, _ in self.done] or not all(
            any(each.request == number and each.final for each in self.answers)
            or number in self.rescheduled
            for number in numbers
        ):
            self.step()
        return [each for each in self.answers[before:] if each.request in numbers]

    def until_responses(self, count: int) -> list[Answer]:
        """Wait until `count` responses have arrived since the start."""
        while len(self.answers) < count:
            self.step()
        return self.answers

    def until_logged(self, text: str) -> dict[str, Any]:
        """Wait for a log line that contains `text`."""
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

    def answer_call(
        self, call: Call, outputs: Sequence[Sent] | None, final: bool = True, **extras: Any
    ) -> None:
        """Send a response to a call; None only ends it."""
        flags = (FINAL if final else 0) | (EMPTY if outputs is None else 0)
        self.send(Kind.CALL_RESPONSE, [call.id, flags], [outputs or ()], None, extras)

    def wait_for_room_query(self) -> int:
        """Wait for the worker's query for room and return its request."""
        while not self.room_queries:
            self.step()
        return self.room_queries[0][1]

    def grant(self) -> int:
        """Grant the oldest query for room and return its request."""
        request = self.wait_for_room_query()
        self.send(Kind.QUERY_RESULT, [self.room_queries.popleft()[0]], extras={"value": None})
        return request

    def fetch(self, request: int) -> None:
        """Grant all queries for room of that request."""
        self._fetched.add(request)
        for number, queried_request in [each for each in self.room_queries if each[1] == request]:
            self.room_queries.remove((number, queried_request))
            self.send(Kind.QUERY_RESULT, [number], extras={"value": None})

    def step(self) -> None:
        """Handle the next frame or returned segment."""
        if not self._frames:
            self._receive()
        if self._frames:
            self._sort(self._frames.popleft())

    def ended(self) -> int:
        """Wait for the end of the process and return its status."""
        return self.process.wait(WAIT_S)

    def stop(self) -> int:
        """Stop the worker and return its exit status."""
        self.send(Kind.STOP)
        self.frame(Kind.STOPPED)
        return self.ended()

    def printed(self) -> str:
        """Return the output of the process's streams after its end."""
        self.ended()
        with suppress(BlockingIOError):  # a process that the model started may still hold them
            while data := os.read(self._output, 1 << 16):
                self._printed += data
        return self._printed.decode()

    def next_printed(self) -> str:
        """Wait for output of the process's streams."""
        self.wait_for(self._output)
        return os.read(self._output, 1 << 16).decode()

    @staticmethod
    def wait_for(descriptor: int) -> None:
        """Wait until the descriptor is readable."""
        assert select.select([descriptor], [], [], WAIT_S)[0]

    def close(self) -> None:
        """End the process and release all resources."""
        for prepare_worker in self._prepared:
            prepare_worker.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self._socket.close()
        self._endpoint.close()
        os.close(self._output)

    def segment_count(self) -> int:
        """Return the number of shared segments that this side created for tensors."""
        return self._endpoint._segment_pool._next - 1

    def lent_count(self) -> int:
        """Return the number of segments that the worker has."""
        return len(self._endpoint._segment_pool._lent)

    def close_socket(self) -> None:
        """Close the socket, as if the server had ended."""
        self._socket.close()

    def _next(self) -> Frame:
        while not self._frames:
            self._receive()
        return self._frames.popleft()

    def _receive(self) -> None:
        readable, _, _ = select.select([self._socket], [], [], WAIT_S)
        assert readable, f"the worker says nothing; before that: {self.logs}"
        data, descriptors, _, _ = socket.recv_fds(self._socket, 1 << 18, 16)
        if not data:
            raise EOFError(f"the worker ended: {self.ended()}\n{self.printed()}")
        self._frames += self._endpoint.feed(data, descriptors)

    def _sort(self, frame: Frame) -> None:
        if frame.kind == Kind.RESPONSES:
            self._take_answers(frame)
        elif frame.kind == Kind.CALL:
            rows, requested = self._endpoint.rows(frame, 3, Sent)
            inputs = {each.name: each.data for each in rows[0]}
            self.calls.append(Call(*frame.words[:3], inputs, requested[0], frame.extras))
        elif frame.kind == Kind.QUERY and frame.extras["verb"] == "credit":
            self.room_queries.append((frame.words[0], frame.extras["arguments"]["request"]))
            if self.room_queries[-1][1] in self._fetched | {NO_REQUEST}:
                self.send(Kind.QUERY_RESULT, [self.room_queries.pop()[0]], extras={"value": None})
        elif frame.kind == Kind.CALL_CONSUMED:
            self.taken.append((frame.words[0], frame.words[1]))
        elif frame.kind in (Kind.CALL_ABANDONED, Kind.CALL_AWAITED):
            (self.left if frame.kind == Kind.CALL_ABANDONED else self.output_names).append(
                frame.words[0]
            )
        elif frame.kind == Kind.NOTIFY and frame.extras["verb"] == "log":
            self.logs.append(frame.extras["arguments"])
        elif frame.kind == Kind.NOTIFY and frame.extras["verb"] == "exited":
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
