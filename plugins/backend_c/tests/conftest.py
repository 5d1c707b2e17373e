"""The backends of the tests, compiled once, and servers that run them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tritonpy import (
    CallbackSink,
    InferRequest,
    InferResponse,
    RunningServer,
    Tensor,
    running_server,
)
from tritonpy_backend_c import include_directory
from tritonpy_testing import ModelRepository

SOURCES = Path(__file__).parent / "backends"
# One source may be installed under several names.
NAMES = {
    "identity": ["identity"],
    "repeat": ["repeat"],
    "total": ["total"],
    "complete": ["complete"],
    "describe": ["describe"],
    "misbehave": ["misbehave"],
    "caller": ["caller"],
    "sleeper": ["sleeper", "blocking"],
}


def compile_backend(source: Path, target: Path, *options: str) -> None:
    """Compile a source to a shared library as an author of a backend does."""
    compiler = ["g++", "-std=c++17"] if source.suffix == ".cc" else ["gcc", "-std=gnu11"]
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [
            *compiler,
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            *options,
            "-I",
            str(include_directory()),
            "-o",
            str(target),
            str(source),
            "-lpthread",
        ],
        check=True,
    )


@pytest.fixture(scope="session")
def backends(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of backends: `NAME/libtriton_NAME.so` of each source."""
    folder = tmp_path_factory.mktemp("backends")
    for source in sorted(SOURCES.glob("*.c*")):
        for name in NAMES[source.stem]:
            compile_backend(source, folder / name / f"libtriton_{name}.so")
    return folder


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the other libraries: `strategy.so`, `cache.so` and `agent.so`."""
    folder = tmp_path_factory.mktemp("libraries")
    for source in sorted((SOURCES.parent / "libraries").glob("*.c")):
        compile_backend(source, folder / f"{source.stem}.so")
    return folder


def int_model(backend: str, more: str = "", batch: int = 0) -> str:
    """Return the configuration of a model with the INT32 tensors IN and OUT of one element."""
    return (
        f'backend: "{backend}" max_batch_size: {batch} '
        'input { name: "IN" data_type: TYPE_INT32 dims: 1 } '
        f'output {{ name: "OUT" data_type: TYPE_INT32 dims: 1 }} {more}'
    )


@pytest.fixture(params=["thread", "process"])
def isolation(request: pytest.FixtureRequest) -> str:
    """Where the instances of the test's models run."""
    value: str = request.param
    return value


Serve = Callable[..., AbstractContextManager["Client"]]


class Client:
    """Calls to a server whose models have the inputs of `int_model`."""

    def __init__(self, server: RunningServer) -> None:
        self.server = server
        self.engine = server.engine

    def send(self, model: str, value: int, **fields: Any) -> Answers:
        """Send a request, and return what will hold its responses."""
        answers = Answers()
        shape = fields.pop("shape", (1,))
        tensor = Tensor.from_numpy("IN", np.full(shape, value, np.int32))
        request = InferRequest(
            model, {"IN": tensor}, CallbackSink(answers.take), accepts_decoupled=True, **fields
        )
        answers.request = request
        self.engine.infer(request)
        return answers

    def ask(self, model: str, value: int, **fields: Any) -> InferResponse:
        """Return the only response to a request."""
        (response,) = self.send(model, value, **fields).wait()
        return response

    def number(self, model: str, value: int, **fields: Any) -> int:
        """Return the number that a model answers."""
        response = self.ask(model, value, **fields)
        assert response.error is None, response.error
        return int(response.outputs[0].numpy().ravel()[0])

    def error(self, model: str, value: int, **fields: Any) -> str:
        """Return the text of the error that a model answers."""
        response = self.ask(model, value, **fields)
        assert response.error is not None, response.outputs
        return response.error.message


class Answers:
    """The responses to one request."""

    def __init__(self) -> None:
        from threading import Event

        self.request: InferRequest
        self.responses: list[InferResponse] = []
        self._final = Event()

    def take(self, _request: InferRequest, response: InferResponse) -> None:
        assert not self._final.is_set(), "a response after the final one"
        self.responses.append(response)
        if response.final:
            self._final.set()

    def wait(self) -> list[InferResponse]:
        """Wait for the final response and return all."""
        assert self._final.wait(60), f"no final response, only {self.responses}"
        return self.responses

    def numbers(self) -> list[int]:
        """Return the numbers in the responses, after the final one."""
        return [int(each.outputs[0].numpy()[0]) for each in self.wait() if each.outputs]


@pytest.fixture
def serve(backends: Path, model_repository: ModelRepository) -> Serve:
    """Start a server for models, given by name and configuration."""

    @contextmanager
    def start(models: dict[str, str], isolation: str, **settings: Any) -> Iterator[Client]:
        for name, config in models.items():
            choice = f'parameters {{ key: "isolation" value {{ string_value: "{isolation}" }} }}'
            model_repository.add(name, f"{config} {choice}")
        frontends = {"http": {"port": 0}, "grpc": {"port": 0}, "metrics": {"port": 0}}
        config = {
            "repositories": [{"url": str(model_repository.path)}],
            "backend_directory": str(backends),
            "frontends": frontends,
        }
        with running_server(config | settings) as server:
            yield Client(server)

    return start
