"""A model that is served twice: by a worker, and in the server's process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tritonpy import InferRequest, InferResponse, Tensor
from tritonpy.tracing import Trace, TraceFamily
from tritonpy_testing import RecordingSink, RunningServer, running_server
from tritonpy_types import TraceLevel

from ..serving import NO_PORTS, write_model

MODES = ("m_process", "m_thread")  # names of models, and where they run
PLAN = """
backend: "python"
input { name: "PLAN" data_type: TYPE_STRING dims: 1 } output { name: "OUT" data_type: TYPE_STRING dims: 1 }
"""
DECOUPLED = "model_transaction_policy { decoupled: true }"
# Methods that execute the plan in a request: `do_<name>(request, *arguments)` returns a JSON value.
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
    """Return the parameter for the model's isolation."""
    return (
        f'parameters {{ key: "isolation" value {{ string_value: "{mode.removeprefix("m_")}" }} }}\n'
    )


def write_in(mode: str, repository: Path, name: str, methods: str, config: str) -> Path:
    """Write a model that runs in one of the modes. Its code may use asyncio, gc and json."""
    folder = write_model(repository, name, methods, config + isolation(mode))
    file = folder / "1" / "model.py"
    file.write_text("import asyncio, gc, json\n" + file.read_text())
    return folder


def write_planned(mode: str, repository: Path, name: str, methods: str, config: str = PLAN) -> Path:
    """Write a model that executes the plans in its requests."""
    return write_in(mode, repository, name, PLANNED + methods, config)


@contextmanager
def both(
    repository: Path, methods: str, config: str = PLAN, **settings: Any
) -> Iterator[RunningServer]:
    """Serve a model that executes plans, in both modes."""
    for mode in MODES:
        write_planned(mode, repository, mode, methods, config)
    with serving(repository, **settings) as server:
        yield server


@contextmanager
def serving(repository: Path, **settings: Any) -> Iterator[RunningServer]:
    """Serve a repository without ports, so that other servers may run at the same time."""
    config = {
        "repositories": [{"url": str(repository)}],
        "frontends": NO_PORTS,
        "exit_on_error": False,
        **settings,
    }
    with running_server(config) as server:
        yield server


def planned(*plan: Any) -> dict[str, Tensor]:
    """Return the inputs of a request with `plan`."""
    return {"PLAN": Tensor.from_numpy("PLAN", np.array([json.dumps(plan).encode()], np.object_))}


def send(
    server: RunningServer, model: str, inputs: Mapping[str, Tensor], **more: Any
) -> list[InferResponse]:
    """Send a request and return its responses."""
    recorder = RecordingSink()
    request = InferRequest(model, dict(inputs), recorder.sink, accepts_decoupled=True, **more)
    server.engine.infer(request)
    (answers,) = recorder.wait(request)
    return answers


def traced(context: str) -> Trace:
    """Return a trace with that context for requests and nested requests."""

    def begun(trace: Trace) -> None:
        trace.context = context

    trace = TraceFamily(TraceLevel.TIMESTAMPS, None, None, begun, lambda _: None).trace()
    assert trace is not None
    return trace


def values_of(answers: Sequence[InferResponse], model: str) -> list[Any]:
    """Return responses as plain values, with `M` for the model's name.

    An error is (code, text), and an empty response is "end".
    """
    return [_value_of(answer, model) for answer in answers]


def query(server: RunningServer, model: str, *plan: Any, **more: Any) -> Any:
    """Return the value of a plan's only response: see `values_of`."""
    (found,) = values_of(send(server, model, planned(*plan), **more), model)
    return found


def _value_of(answer: InferResponse, model: str) -> Any:
    if answer.error is not None:
        return int(answer.error.code), answer.error.message.replace(model, "M")
    if answer.empty:
        return "end"
    (text,) = answer.outputs[0].strings()
    return json.loads(text.replace(model.encode(), b"M"))
