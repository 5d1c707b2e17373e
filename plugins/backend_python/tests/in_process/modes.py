"""One model, served twice: by a worker, and in the server's own process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tritonpy import InferRequest, InferResponse, Tensor, Trace, TraceFamily
from tritonpy.testing import RunningServer, Witness, running_server
from tritonpy.types import TraceLevel

from ..serving import NO_PORTS, write_model

MODES = ("m_process", "m_thread")  # names of models that run where their names say
PLAN = """
backend: "python"
input { name: "PLAN" data_type: TYPE_STRING dims: 1 } output { name: "OUT" data_type: TYPE_STRING dims: 1 }
"""
DECOUPLED = "model_transaction_policy { decoupled: true }"
# The methods of a class whose request says what is to be done: `do_<name>(request, *arguments)` returns what JSON can carry.
PLANNED = """
def plan(self, request):
    return json.loads(pb_utils.get_input_tensor_by_name(request, "PLAN").as_numpy()[0])

def answer(self, value):
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([json.dumps(value).encode()], object))])

def execute(self, requests):
    responses = []
    for request in requests:
        name, *arguments = self.plan(request)
        responses.append(self.answer(getattr(self, "do_" + name)(request, *arguments)))
    return responses
"""


def isolation(mode: str) -> str:
    """Return the parameter that chooses where a model runs."""
    return f'parameters {{ key: "isolation" value {{ string_value: "{mode.removeprefix("m_")}" }} }}\n'


def write_in(mode: str, repository: Path, name: str, methods: str, config: str) -> Path:
    """Write a model that runs in one of the modes; its code may use json and gc."""
    folder = write_model(repository, name, methods, config + isolation(mode))
    file = folder / "1" / "model.py"
    file.write_text("import asyncio, gc, json\n" + file.read_text())
    return folder


def write_planned(mode: str, repository: Path, name: str, methods: str, config: str = PLAN) -> Path:
    """Write a model that does what its requests say."""
    return write_in(mode, repository, name, PLANNED + methods, config)


@contextmanager
def both(repository: Path, methods: str, config: str = PLAN, **settings: Any) -> Iterator[RunningServer]:
    """Serve a model that does what its requests say, in each mode."""
    for mode in MODES:
        write_planned(mode, repository, mode, methods, config)
    with serving(repository, **settings) as server:
        yield server


@contextmanager
def serving(repository: Path, **settings: Any) -> Iterator[RunningServer]:
    """Serve a repository without ports; other servers may run beside it."""
    config = {"repositories": [{"url": str(repository)}], "frontends": NO_PORTS, "exit_on_error": False, **settings}
    with running_server(config) as server:
        yield server


def planned(*plan: Any) -> dict[str, Tensor]:
    """Return the inputs of a request that asks for `plan`."""
    return {"PLAN": Tensor.from_numpy("PLAN", np.array([json.dumps(plan).encode()], np.object_))}


def send(server: RunningServer, model: str, inputs: Mapping[str, Tensor], **more: Any) -> list[InferResponse]:
    """Send a request and return its answers."""
    witness = Witness()
    request = InferRequest(model, dict(inputs), witness.sink, accepts_decoupled=True, **more)
    server.engine.infer(request)
    (answers,) = witness.wait(request)
    return answers


def traced(context: str) -> Trace:
    """Return a trace whose requests, those of models too, have that context."""

    def begun(trace: Trace) -> None:
        trace.context = context

    trace = TraceFamily(TraceLevel.TIMESTAMPS, None, None, begun, lambda _: None).trace()
    assert trace is not None
    return trace


def told(answers: Sequence[InferResponse], model: str) -> list[Any]:
    """Return answers as plain values: what was sent, (code, text) for an error, "end" for an empty one; each name of the model as `M`."""
    return [_told(answer, model) for answer in answers]


def ask(server: RunningServer, model: str, *plan: Any, **more: Any) -> Any:
    """Return what the model says to a plan: see `told`."""
    (found,) = told(send(server, model, planned(*plan), **more), model)
    return found


def _told(answer: InferResponse, model: str) -> Any:
    if answer.error is not None:
        return int(answer.error.code), answer.error.message.replace(model, "M")
    if answer.empty:
        return "end"
    (text,) = answer.outputs[0].strings()
    return json.loads(text.replace(model.encode(), b"M"))
