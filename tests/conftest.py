"""A server process on free ports and the fixtures that start it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import tritonclient.grpc
import tritonclient.http
from onnx import TensorProto, helper

from tests.process_tree import end_tree
from tests.sampling import Sampling
from tests.served_transport import transport_flags
from tritonpy_testing import ModelRepository, free_port

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 60
LISTENS = re.compile(r"(http|grpc|metrics|openai) listens on 127\.0\.0\.1:(\d+)")
TYPES = {
    "BOOL": TensorProto.BOOL, "UINT8": TensorProto.UINT8, "UINT16": TensorProto.UINT16, "UINT32": TensorProto.UINT32,
    "UINT64": TensorProto.UINT64, "INT8": TensorProto.INT8, "INT16": TensorProto.INT16, "INT32": TensorProto.INT32,
    "INT64": TensorProto.INT64, "FP16": TensorProto.FLOAT16, "FP32": TensorProto.FLOAT, "FP64": TensorProto.DOUBLE,
    "BYTES": TensorProto.STRING, "BF16": TensorProto.BFLOAT16,
}  # fmt: skip

SUITES = Sampling.of_environment("suite")
SAMPLED = pytest.StashKey[str]()
# Modules that run in every sample: the rules of the project, its installation, and one round of each protocol.
ALWAYS = frozenset(
    {
        "test_architecture",
        "test_clients",
        "test_failures",
        "test_install",
        "test_readme",
        "test_sampling",
        "test_shutdown",
        "test_vocabulary",
    }
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the end-to-end suites that are not in the sample; a suite is a module of this folder."""
    here = Path(__file__).parent
    suites = {item.path.stem for item in items if item.path.parent == here} - ALWAYS
    taken = {name for name in suites if SUITES.takes(name)}
    if suites and SUITES.share < 1:
        config.stash[SAMPLED] = SUITES.described(len(taken), len(suites), "end-to-end suites")
        gone = [
            item for item in items if item.path.parent == here and item.path.stem in suites - taken
        ]
        kept = set(items) - set(gone)
        items[:] = [item for item in items if item in kept]
        config.hook.pytest_deselected(items=gone)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print which suites ran and how to repeat the selection."""
    if SAMPLED in config.stash:
        terminalreporter.write_line(config.stash[SAMPLED])


@dataclass(frozen=True)
class Response:
    """An HTTP response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class ServerProcess:
    """A `tritonpy serve` process; `ports` come from its log, 0 for a frontend that is off."""

    process: subprocess.Popen[bytes]
    output: Path
    ports: dict[str, int] = field(default_factory=dict)

    @property
    def http(self) -> str:
        return f"127.0.0.1:{self.ports['http']}"

    @property
    def grpc(self) -> str:
        return f"127.0.0.1:{self.ports['grpc']}"

    @property
    def log(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")

    def request(
        self, path: str, body: bytes | str | None = None, headers: Mapping[str, str] = {}
    ) -> Response:
        """Send GET, or POST if there is a body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["http"], timeout=TIMEOUT_S)
        with contextlib.closing(connection):
            connection.request("GET" if body is None else "POST", path, body, dict(headers))
            response = connection.getresponse()
            return Response(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read(),
            )

    def exchange(self, sent: bytes, frontend: str = "http", last: bool = True) -> bytes:
        """Send raw bytes and return everything that the server sends until it closes.

        `last` shuts down the sending side after `sent`.
        """
        received = b""
        address = ("127.0.0.1", self.ports[frontend])
        with (
            socket.create_connection(address, TIMEOUT_S) as connection,
            contextlib.suppress(ConnectionError),
        ):
            connection.sendall(sent)
            if last:
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                received += part
        return received

    def wait(self, condition: Callable[[], Any], what: str, timeout_s: float = TIMEOUT_S) -> Any:
        """Return the first true value of `condition`.

        Fails with the log if that takes too long or the process ends.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if found := condition():
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        pytest.fail(
            f"{what}: not so (exit status {self.process.poll()}); it printed:\n{self.log[-6000:]}"
        )

    def wait_until_logged(self, pattern: str, timeout_s: float = TIMEOUT_S) -> None:
        self.wait(lambda: re.search(pattern, self.log), f"logs '{pattern}'", timeout_s)

    def wait_until_exit(self) -> int:
        return self.process.wait(TIMEOUT_S)

    def end(self) -> None:
        """Kill the remaining processes, children included."""
        end_tree(self.process, 10)


class Models:
    """Writes model repositories."""

    def __init__(self, path: Path) -> None:
        self.repository = ModelRepository(path)
        self.path = path

    def example(self, name: str) -> None:
        """Copy one of the project's examples."""
        shutil.copytree(ROOT / "examples" / "models" / name, self.path / name)

    def identity(
        self, name: str, datatype: str, dims: list[Any], config: str | None = None
    ) -> None:
        """Add an ONNX model that returns IN as OUT."""
        self.repository.add(name, config, {1: {"model.onnx": identity_onnx(datatype, dims)}})

    def toy(self, backend: str, datatype: str = "FP32", more: str = "", name: str = "") -> None:
        """Add a model of one of the toy backends; its default name is that of the backend."""
        config = f'backend: "{backend}"\nmax_batch_size: 8\n{tensors_text(datatype, "1")}{more}\n'
        self.repository.add(name or backend, config)


def tensors_text(datatype: str, dims: str) -> str:
    """Return the part of a configuration that describes IN and OUT."""
    kind = datatype.replace("BYTES", "STRING")
    return "".join(
        f'{where} [{{ name: "{name}" data_type: TYPE_{kind} dims: [{dims}] }}]\n'
        for where, name in (("input", "IN"), ("output", "OUT"))
    )


def identity_onnx(datatype: str, dims: list[Any]) -> bytes:
    """Return an ONNX file; `dims` holds numbers and names of variable dimensions."""
    tensors = [helper.make_tensor_value_info(name, TYPES[datatype], dims) for name in ("IN", "OUT")]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["IN"], ["OUT"])], "identity", tensors[:1], tensors[1:]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


Serve = Callable[..., contextlib.AbstractContextManager[ServerProcess]]


@pytest.fixture(scope="session")
def free_ports() -> Callable[[int], list[int]]:
    """`free_ports(n)`: n free ports, for tests that cannot let the server choose."""
    return find_ports


def find_ports(count: int) -> list[int]:
    """Return ports on which no process listens."""
    found: set[int] = set()
    while len(found) < count:
        found.add(free_port())
    return list(found)


@pytest.fixture(scope="session")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH with the installed toy backends."""
    folder = tmp_path_factory.mktemp("toys")
    shutil.copy(ROOT / "tests" / "toys" / "toy_backends.py", folder)
    installed = folder / "toy_backends-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-backends\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[tritonpy]\ntoy-backends = toy_backends\n")
    return folder


@pytest.fixture(scope="session")
def serve(toys: Path) -> Serve:
    """`with serve("--flag=value", …) as served`: a server on free ports.

    `until` is the log line to wait for, None for no wait. `under` is a command that runs the
    server's command, such as `prlimit`.
    """

    @contextlib.contextmanager
    def start(
        *flags: str, until: str | None = "ready: ", ports: bool = True, under: Sequence[str] = ()
    ) -> Iterator[ServerProcess]:
        free = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"] if ports else []
        environment = {**os.environ, "PYTHONPATH": str(toys), "PYTHONUNBUFFERED": "1"}
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "log"
            with output.open("wb") as file:
                process = subprocess.Popen(
                    [*under, sys.executable, "-m", "tritonpy", "serve", *transport_flags(), *free, *flags],
                    stdout=file, stderr=file, start_new_session=True, env=environment, cwd=folder,
                )  # fmt: skip
            served = ServerProcess(process, output)
            try:
                if until is not None:
                    served.wait_until_logged(until)
                    served.ports.update(
                        (name, int(port)) for name, port in LISTENS.findall(served.log)
                    )
                yield served
            finally:
                served.end()

    return start


@pytest.fixture
def models(tmp_path: Path) -> Models:
    """An empty model repository for this test."""
    return Models(tmp_path / "models")


@pytest.fixture(scope="session")
def server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A shared server for tests that do not change it: examples, identities of each type, and toys.

    Its control mode is explicit; `spare` is not loaded.
    """
    models = Models(tmp_path_factory.mktemp("session") / "models")
    for name in ("add_sub", "digits"):
        models.example(name)
    for datatype in TYPES:
        models.identity(
            f"identity_{datatype.lower()}",
            datatype,
            ["rows", "columns"],
            tensors_text(datatype, "-1, -1"),
        )
    models.identity("scalar", "FP32", ["batch"], SCALAR)
    models.identity("completed", "FP32", ["batch", 3])
    models.identity("spare", "FP32", ["batch", 2])
    models.toy("raising", more="dynamic_batching { }")
    models.toy("repeat", "INT32", "model_transaction_policy { decoupled: true }")
    loaded = [f"--load-model={path.name}" for path in models.path.iterdir() if path.name != "spare"]
    with serve(
        f"--model-repository={models.path}", "--model-control-mode=explicit", *loaded
    ) as served:
        yield served


SCALAR = """
max_batch_size: 8
input [{ name: "IN" data_type: TYPE_FP32 dims: [1] reshape: { shape: [] } }]
output [{ name: "OUT" data_type: TYPE_FP32 dims: [1] reshape: { shape: [] } }]
"""


@pytest.fixture(scope="session")
def http_client(server: ServerProcess) -> Iterator[Any]:
    with tritonclient.http.InferenceServerClient(
        server.http, concurrency=4, network_timeout=TIMEOUT_S
    ) as client:
        yield client


@pytest.fixture(scope="session")
def grpc_client(server: ServerProcess) -> Iterator[Any]:
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        yield client


@pytest.fixture(params=["http", "grpc"])
def protocol(request: pytest.FixtureRequest) -> Any:
    """tritonclient's module of each protocol."""
    return getattr(tritonclient, request.param)


@pytest.fixture
def client(protocol: Any, request: pytest.FixtureRequest) -> Any:
    """A client of `server` over each protocol."""
    return request.getfixturevalue(f"{protocol.__name__.rpartition('.')[2]}_client")


@pytest.fixture(scope="session")
def onnx_identity() -> Callable[[str, list[Any]], bytes]:
    """`onnx_identity(datatype, dims)`: an ONNX file that returns IN as OUT."""
    return identity_onnx
