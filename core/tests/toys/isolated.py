"""Backends that show what becomes of them in a process of their own, and a server whose event loop runs."""

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

from tritonpy.api.backend import Array, Backend, InstanceContext, ModelContext
from tritonpy.api.options import Options
from tritonpy.custom_metrics import MetricKind
from tritonpy.errors import InvalidArgument, ResourceExhausted
from tritonpy.testing import RunningServer, running_server
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.types import Batch, CallbackSink, InferRequest, InferResponse, Tensor

from .serving import SILENT, ToyPlugin

ISOLATED = 'parameters { key: "isolation" value { string_value: "process" } }'
ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def isolating(repository: ModelRepository, plugin: ToyPlugin, **settings: Any) -> Iterator[RunningServer]:
    """Serve `repository` on a running event loop; worker processes can import the modules of the tests."""
    sys.path.append(str(ROOT))
    try:
        config = {"repositories": [{"url": str(repository.path)}], "frontends": SILENT} | settings
        with running_server(config, [plugin], installed=False) as server:
            yield server
    finally:
        sys.path.remove(str(ROOT))


class Introvert(Backend):
    """IN says what is asked of the process: OUT is its answer."""

    PID, STDIN, SESSION, INHERITED, CORES, KNOWN_CORES = range(6)

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        answers = {
            self.PID: os.getpid,
            self.STDIN: lambda: len(sys.stdin.read()),
            self.SESSION: lambda: os.getsid(0),
            self.CORES: lambda: len(os.sched_getaffinity(0)),
            self.KNOWN_CORES: lambda: len(self.instance.cores),
            # Beside the standard streams, its socket and the lifeline there is only the folder that is listed.
            self.INHERITED: lambda: sum(
                os.get_inheritable(int(each))
                for each in os.listdir("/proc/self/fd")
                if int(each) > 2 and _is_open(each)
            ),
        }
        return {"OUT": np.array([answers[int(inputs["IN"][0])]()], np.int32)}


def _is_open(descriptor: str) -> bool:
    try:
        os.fstat(int(descriptor))
    except OSError:
        return False
    return True


class Fragile(Backend):
    """Doubles; what kills its process is in the constants."""

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


class Scarce(Backend):
    """Has always been used up."""

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        raise ResourceExhausted("nothing left", retry_after_s=7.5)


class Broken(Backend):
    """Fails, in another process than `server`, where the parameter `fails` says and as it says: "init:refused", "load:unexpected", …"""

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


class TunedOptions(Options, frozen=True):
    """What `Tuned` is configured with."""

    scale_by: Annotated[int, msgspec.Meta(description="A factor.")] = 1
    names: Annotated[tuple[str, ...], msgspec.Meta(description="Names.")] = ()


class Tuned(Backend):
    """OUT tells what the contexts say."""

    Options: ClassVar[type[Options]] = TunedOptions

    @classmethod
    def load(cls, model: ModelContext) -> object:
        model.log.info("opened")
        return {"opened": (model.path / "weights.txt").read_text(), "by": model.engine.server_metadata().name}

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        model, instance = self.model, self.instance
        said = [
            model.name, model.version, model.path.name, model.directory.name, model.config.backend, model.shared,
            dict(model.output_types), model.options, model.default_max_batch_size, dict(model.parameters),
            instance.name, instance.kind, instance.device_id, instance.index, instance.profiles,
        ]  # fmt: skip
        return {"OUT": np.array([repr(each) for each in said], np.object_)}

    def close(self) -> None:
        (self.model.path / "closed.txt").write_text("closed")

    @classmethod
    def unload(cls, shared: object) -> None:
        if shared is not None:
            logging.getLogger("a.library").warning("unloaded %s", shared)


class Caller(Backend):
    """OUT = 4 * IN + 1: the model `double` is asked twice; 404 asks a model that nobody has."""

    def execute(self, batch: Batch) -> None:
        for request in batch.requests:
            number = int(request.inputs["IN"].numpy()[0])
            try:
                once = self._call("nobody" if number == 404 else "double", number, request)
                out = np.array([self._call("double", once, request) + 1], np.int32)
            except Exception as error:
                request.respond(InferResponse.failed(request, error))  # type: ignore[arg-type]
            else:
                request.respond(InferResponse([Tensor.from_numpy("OUT", out)], self.model.name, 1, request.id))

    def _call(self, model: str, number: int, parent: InferRequest) -> int:
        answered = threading.Event()
        answers: list[InferResponse] = []
        sink = CallbackSink(lambda _, response: (answers.append(response), answered.set()))
        tensor = Tensor.from_numpy("IN", np.array([number], np.int32))
        self.model.engine.infer(InferRequest(model, {"IN": tensor}, sink, parent=parent, id=parent.id))
        assert answered.wait(10), "the other model did not answer"
        (answer,) = answers
        if answer.error is not None:
            raise answer.error
        return int(answer.outputs[0].numpy()[0])


class Patient(Backend):
    """Answers when the request is cancelled, with the error that says so; 0 is answered at once, then it waits for a file of the name `go`."""

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
            request.respond(InferResponse.failed(request, InvalidArgument("cancelled while it ran")))

    def is_ready(self) -> bool:
        return not (self.model.directory / "not_ready").exists()


class Measured(Backend):
    """Counts what it doubles; negative numbers are what a counter refuses."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._counted = model.metrics.family("toys_counted", "What toys counted", MetricKind.COUNTER).metric(
            {"toy": "1"}
        )

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        self._counted.increment(float(inputs["IN"][0]))
        return {"OUT": np.array([int(self._counted.value())], np.int32)}


class Stubborn(Backend):
    """Does not let go of the interpreter where the parameter `where` says, "init" or "infer"; the file `pid` tells who does it."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._stay("init")

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        self._stay("infer")
        return {"OUT": inputs["IN"]}

    def _stay(self, where: str) -> None:
        folder = self.model.directory
        (folder / "begun").write_text(str(os.getpid()))
        (folder / "begun").rename(folder / "pid")  # whole, or not there
        if self.model.parameters["where"] == where:
            sum(range(1 << 62))


class Considerate(Backend):
    """Decoupled: OUT = 0, 1, … IN-1, each when the client has room for it; ends early for a client that gave up."""

    def execute(self, batch: Batch) -> None:
        for request in batch.requests:
            for number in range(int(request.inputs["IN"].numpy()[0])):
                if not request.wait_for_room():
                    break
                out = Tensor.from_numpy("OUT", np.array([number], np.int32))
                request.respond(InferResponse([out], self.model.name, 1, request.id, final=False))
            request.respond(InferResponse((), self.model.name, 1, request.id, empty=True))


class Forking(Backend):
    """Doubles in a process that it forks, which logs."""

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        child = context.Process(target=_double, args=(theirs, inputs["IN"]))
        child.start()
        doubled = ours.recv()
        child.join()
        return {"OUT": doubled}


def _double(connection: Any, array: Array) -> None:
    logging.getLogger("tritonpy.backend").warning("said by a child")
    connection.send(array * 2)
