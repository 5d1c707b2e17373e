"""Backends that show the behavior of isolated processes, and a server with a running event loop."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

import tritonpy_rate_limiter
import tritonpy_workers
from tritonpy.api.backend import Array, Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy_config.options import Options
from tritonpy_metrics import MetricKind
from tritonpy_testing import RunningServer, running_server
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_types import Batch, CallbackSink, InferRequest, InferResponse, Tensor
from tritonpy_types.errors import InvalidArgument, ResourceExhausted

from .serving import SILENT, ToyPlugin

ISOLATED = 'parameters { key: "isolation" value { string_value: "process" } }'
ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def isolating(
    repository: ModelRepository, plugin: ToyPlugin, **settings: Any
) -> Iterator[RunningServer]:
    """Serve `repository` on a running event loop; worker processes can import the test modules."""
    sys.path.append(str(ROOT))
    try:
        config = {"repositories": [{"url": str(repository.path)}], "frontends": SILENT} | settings
        with running_server(
            config, [plugin, tritonpy_workers, tritonpy_rate_limiter], installed=False
        ) as server:
            yield server
    finally:
        sys.path.remove(str(ROOT))


class ProcessInspector(Backend):
    """Reports properties of its process: IN selects the property, OUT is its value."""

    PID, STDIN, SESSION, INHERITED, CORES, KNOWN_CORES, LOG_LEVEL = range(7)

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        responses = {
            self.PID: os.getpid,
            self.STDIN: lambda: len(sys.stdin.read()),
            self.SESSION: lambda: os.getsid(0),
            self.CORES: lambda: len(os.sched_getaffinity(0)),
            self.KNOWN_CORES: lambda: len(self.instance.cores),
            self.LOG_LEVEL: lambda: logging.getLogger("tritonpy").level,
            # Other descriptors than the standard streams, the socket and the parent pipe: only the
            # listed folder.
            self.INHERITED: lambda: sum(
                os.get_inheritable(int(each))
                for each in os.listdir("/proc/self/fd")
                if int(each) > 2 and _is_open(each)
            ),
        }
        return {"OUT": np.array([responses[int(inputs["IN"][0])]()], np.int32)}


def _is_open(descriptor: str) -> bool:
    try:
        os.fstat(int(descriptor))
    except OSError:
        return False
    return True


class CrashingBackend(Backend):
    """Doubles; the constants are numbers that end its process."""

    KILLED, EXITED, EXIT_CAUGHT, ABORTED = 666, 667, 668, 669

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        number = int(inputs["IN"].flat[0])
        if number == self.KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == self.EXITED:
            print("about to leave")
            os._exit(3)
        if number == self.EXIT_CAUGHT:
            sys.exit("the backend wants to leave")
        if number == self.ABORTED:
            os.abort()
        return {"OUT": inputs["IN"] * 2}


class ExhaustedBackend(Backend):
    """Always raises ResourceExhausted."""

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        raise ResourceExhausted("nothing left", retry_after_s=7.5)


class Broken(Backend):
    """Fails in another process than `server`, as the parameter `fails` selects.

    Its values are "init:refused", "load:unexpected", …
    """

    @classmethod
    def load(cls, model: ModelContext) -> object:
        _fail("load", model)
        return None

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        _fail("init", model)


def _fail(where: str, model: ModelContext) -> None:
    place, _, how = model.parameters["fails"].partition(":")
    if place != where or os.getpid() == int(model.parameters["server"]):
        return
    if how == "refused":
        raise InvalidArgument("the weights are of the wrong kind")
    if how == "unexpected":
        raise ValueError("no weights")
    print("out of luck", file=sys.stderr)
    os._exit(7)


class ContextReporterOptions(Options, frozen=True):
    """The options of `ContextReporter`."""

    scale_by: Annotated[int, msgspec.Meta(description="A factor.")] = 1
    names: Annotated[tuple[str, ...], msgspec.Meta(description="Names.")] = ()


class ContextReporter(Backend):
    """Returns the values of its contexts as OUT."""

    Options: ClassVar[type[Options]] = ContextReporterOptions

    @classmethod
    def load(cls, model: ModelContext) -> object:
        model.log.info("opened")
        return {
            "opened": (model.path / "weights.txt").read_text(),
            "by": model.engine.server_metadata().name,
        }

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        model, instance = self.model, self.instance
        values = [
            model.name, model.version, model.path.name, model.directory.name, model.config.backend, model.shared,
            dict(model.output_types), model.options, model.default_max_batch_size, dict(model.parameters),
            instance.name, instance.kind, instance.device_id, instance.index, instance.profiles,
        ]  # fmt: skip
        return {"OUT": np.array([repr(each) for each in values], np.object_)}

    def close(self) -> None:
        (self.model.path / "closed.txt").write_text("closed")

    @classmethod
    def unload(cls, shared: object) -> None:
        if shared is not None:
            logging.getLogger("a.library").warning("unloaded %s", shared)


class Caller(Backend):
    """OUT = 4 * IN + 1: it calls the model `double` twice; 404 calls an unknown model."""

    def execute(self, batch: Batch) -> None:
        for request in batch.requests:
            number = int(request.inputs["IN"].numpy()[0])
            try:
                once = self._call("unknown" if number == 404 else "double", number, request)
                out = np.array([self._call("double", once, request) + 1], np.int32)
            except Exception as error:
                request.respond(InferResponse.failed(request, error))  # type: ignore[arg-type]
            else:
                request.respond(
                    InferResponse([Tensor.from_numpy("OUT", out)], self.model.name, 1, request.id)
                )

    def _call(self, model: str, number: int, parent: InferRequest) -> int:
        done = threading.Event()
        responses: list[InferResponse] = []
        sink = CallbackSink(lambda _, response: (responses.append(response), done.set()))
        tensor = Tensor.from_numpy("IN", np.array([number], np.int32))
        self.model.engine.infer(
            InferRequest(model, {"IN": tensor}, sink, parent=parent, id=parent.id)
        )
        assert done.wait(10), "the other model did not respond"
        (response,) = responses
        if response.error is not None:
            raise response.error
        return int(response.outputs[0].numpy()[0])


class WaitsForCancellation(Backend):
    """Responds with an error when the request is cancelled.

    The number 0 gets its response immediately; the execution then waits for the file `go`.
    """

    def execute(self, batch: Batch) -> None:
        for request in batch.requests:
            out = Tensor.from_numpy("OUT", request.inputs["IN"].numpy())
            if int(out.data[0]) == 0:
                request.respond(InferResponse([out], self.model.name, 1, request.id))
                while not (self.model.directory / "go").exists():
                    time.sleep(0.001)
                continue
            while not request.cancelled:
                time.sleep(0.001)
            request.respond(
                InferResponse.failed(request, InvalidArgument("cancelled while it ran"))
            )

    def is_ready(self) -> bool:
        return not (self.model.directory / "not_ready").exists()


class CountingBackend(Backend):
    """Counts its inputs; a counter refuses negative numbers."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._counted = model.metrics.family(
            "toys_counted", "What toys counted", MetricKind.COUNTER
        ).metric({"toy": "1"})

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        self._counted.increment(float(inputs["IN"][0]))
        return {"OUT": np.array([int(self._counted.value())], np.int32)}


class BlockingBackend(Backend):
    """Holds the interpreter lock in "init" or "infer", as the parameter `where` selects.

    The file `pid` identifies the process.
    """

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._block("init")

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        self._block("infer")
        return {"OUT": inputs["IN"]}

    def _block(self, where: str) -> None:
        folder = self.model.directory
        (folder / "begun").write_text(str(os.getpid()))
        (folder / "begun").rename(folder / "pid")  # complete or absent
        if self.model.parameters["where"] == where:
            sum(range(1 << 62))


class FlowControlledBackend(Backend):
    """Decoupled: OUT = 0, 1, … IN-1, each when the client has credit.

    Ends early after a cancellation.
    """

    def execute(self, batch: Batch) -> None:
        for request in batch.requests:
            for number in range(int(request.inputs["IN"].numpy()[0])):
                if not request.wait_for_credit():
                    break
                out = Tensor.from_numpy("OUT", np.array([number], np.int32))
                request.respond(InferResponse([out], self.model.name, 1, request.id, final=False))
            request.respond(InferResponse((), self.model.name, 1, request.id, empty=True))


class ForkingBackend(Backend):
    """Doubles in a process that it forks, which also logs."""

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        child = context.Process(target=_double, args=(theirs, inputs["IN"]))
        child.start()
        doubled = ours.recv()
        child.join()
        return {"OUT": doubled}


def _double(connection: Any, array: Array) -> None:
    logging.getLogger("tritonpy.backend").warning("logged by a child")
    connection.send(array * 2)
