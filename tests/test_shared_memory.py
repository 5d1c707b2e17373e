"""Shared memory with tritonclient's utilities, its four clients and the real perf_analyzer."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import inspect
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException, serialized_byte_size, shared_memory
from tritonclient.utils import serialize_byte_tensor as wire_form

from tests.conftest import Models, tensors_text

PERF_ANALYZER = os.environ.get("TRITONPY_PERF_ANALYZER", "")
LEFT = np.arange(16, dtype=np.int32).reshape(1, 16)
RIGHT = np.full((1, 16), 3, np.int32)
TEXT = np.array([[b"one", b""], [b"\x00\x01", "zwölf".encode()]], np.object_)
LARGE = 16 << 20
IDENTITY = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(request, "IN").as_numpy())])
            for request in requests
        ]
"""
WAITING = """
import os, time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        array = pb_utils.get_input_tensor_by_name(requests[0], "IN").as_numpy()
        folder = array.tobytes().rstrip(b"\\0").decode()
        open(os.path.join(folder, "arrived"), "w").close()
        while not os.path.exists(os.path.join(folder, "go")):
            time.sleep(0.01)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", array)])]
"""


@pytest.fixture(scope="module")
def sharing(serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server that lets clients register memory: threads and processes, ONNX and Python."""
    models = Models(tmp_path_factory.mktemp("sharing"))
    models.example("add_sub")
    models.identity("text", "BYTES", ["rows", "columns"], tensors_text("BYTES", "-1, -1"))
    models.identity("my_model", "FP32", ["rows", "columns"], tensors_text("FP32", "-1, -1"))
    process = 'parameters { key: "isolation" value: { string_value: "process" } }\n'
    models.identity("large", "UINT8", ["size"], tensors_text("UINT8", "-1"))
    models.identity("large_in_process", "UINT8", ["size"], tensors_text("UINT8", "-1") + process)
    for name, code in (("large_python", IDENTITY), ("waiting", WAITING)):
        config = f'backend: "python"\n{tensors_text("UINT8", "-1")}'
        models.repository.add(name, config, {1: {"model.py": code}})
    with serve(f"--model-repository={models.path}", "--allow-client-shm=true") as served:
        yield served


class Client:
    """One of tritonclient's clients; coroutines are awaited."""

    def __init__(self, kind: str, served: Any) -> None:
        protocol, _, aio = kind.partition(" ")
        self.protocol: Any = getattr(tritonclient, protocol)
        module = self.protocol.aio if aio else self.protocol
        self.served = served
        self._loop = asyncio.Runner()
        address = getattr(served, protocol)

        async def make() -> Any:
            return module.InferenceServerClient(address)

        self._client = self._loop.run(make())

    def close(self) -> None:
        self.call("close")
        self._loop.close()

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        found = getattr(self._client, method)(*arguments, **named)
        return self._loop.run(found) if inspect.isawaitable(found) else found

    def input(
        self, name: str, array: np.ndarray[Any, Any], datatype: str, region: str, offset: int = 0
    ) -> Any:
        given = self.protocol.InferInput(name, list(array.shape), datatype)
        given.set_shared_memory(
            region,
            serialized_byte_size(wire_form(array)) if datatype == "BYTES" else array.nbytes,
            offset,
        )
        return given

    def output(self, name: str, region: str, byte_size: int, offset: int = 0) -> Any:
        wanted = self.protocol.InferRequestedOutput(name)
        wanted.set_shared_memory(region, byte_size, offset)
        return wanted


@pytest.fixture(params=["http", "http aio", "grpc", "grpc aio"])
def client(request: pytest.FixtureRequest, sharing: Any) -> Iterator[Client]:
    made = Client(request.param, sharing)
    yield made
    made.call("unregister_system_shared_memory")
    made.close()


@pytest.fixture
def region(client: Client) -> Iterator[Callable[..., Any]]:
    """`region(name, allocated)`: tritonclient's memory, registered in full or in part as `name`."""
    with contextlib.ExitStack() as stack:

        def make(name: str, allocated: int, byte_size: int = 0, offset: int = 0) -> Any:
            key = f"/tritonpy-{secrets.token_hex(6)}"
            handle = shared_memory.create_shared_memory_region(name, key, allocated)
            stack.callback(shared_memory.destroy_shared_memory_region, handle)
            client.call("register_system_shared_memory", name, key, byte_size or allocated, offset)
            return handle

        yield make


def status(client: Client, name: str = "") -> list[dict[str, Any]]:
    """Return the status as plain data, whatever the protocol."""
    found = client.call("get_system_shared_memory_status", name)
    if isinstance(found, list):
        return found
    fields = ("name", "key", "offset", "byte_size")
    return [
        {field: getattr(found.regions[key], field) for field in fields}
        for key in sorted(found.regions)
    ]


def shape_of(result: Any, name: str) -> list[int]:
    output = result.get_output(name)
    return output["shape"] if isinstance(output, dict) else list(output.shape)


def test_inputs_and_outputs_can_be_in_shared_memory(
    client: Client, region: Callable[..., Any]
) -> None:
    given, taken = region("given", 128), region("taken", 128)
    shared_memory.set_shared_memory_region(given, [LEFT, RIGHT])
    inputs = [
        client.input("INPUT0", LEFT, "INT32", "given"),
        client.input("INPUT1", RIGHT, "INT32", "given", 64),
    ]
    outputs = [client.output("OUTPUT0", "taken", 64), client.output("OUTPUT1", "taken", 64, 64)]
    result = client.call("infer", "add_sub", inputs, outputs=outputs)
    for name, offset, expected in (("OUTPUT0", 0, LEFT + RIGHT), ("OUTPUT1", 64, LEFT - RIGHT)):
        assert shape_of(result, name) == [1, 16]
        assert (
            shared_memory.get_contents_as_numpy(taken, np.int32, [1, 16], offset=offset).tolist()
            == expected.tolist()
        )


def test_one_request_mixes_regions_and_data(client: Client, region: Callable[..., Any]) -> None:
    handle = region("mixed", 128)
    shared_memory.set_shared_memory_region(handle, [LEFT])
    near = client.protocol.InferInput("INPUT1", [1, 16], "INT32").set_data_from_numpy(RIGHT)
    outputs = [
        client.output("OUTPUT0", "mixed", 64, 64),
        client.protocol.InferRequestedOutput("OUTPUT1"),
    ]
    result = client.call(
        "infer", "add_sub", [client.input("INPUT0", LEFT, "INT32", "mixed"), near], outputs=outputs
    )
    assert (result.as_numpy("OUTPUT1") == LEFT - RIGHT).all()
    assert (
        shared_memory.get_contents_as_numpy(handle, np.int32, [1, 16], offset=64) == LEFT + RIGHT
    ).all()


def test_strings_use_the_wire_form(client: Client, region: Callable[..., Any]) -> None:
    handle = region("text", 4096)
    shared_memory.set_shared_memory_region(handle, [wire_form(TEXT)])
    inputs, outputs = (
        [client.input("IN", TEXT, "BYTES", "text")],
        [client.output("OUT", "text", 1000, 2048)],
    )
    result = client.call("infer", "text", inputs, outputs=outputs)
    assert shape_of(result, "OUT") == [2, 2]
    assert (
        shared_memory.get_contents_as_numpy(handle, np.object_, [2, 2], offset=2048).tolist()
        == TEXT.tolist()
    )
    answered = client.call("infer", "text", inputs)
    assert answered.as_numpy("OUT").tolist() == TEXT.tolist()


@pytest.mark.parametrize("model", ["large", "large_in_process", "large_python"])
def test_large_tensors_reach_threads_and_processes(
    client: Client, region: Callable[..., Any], model: str
) -> None:
    handle = region("large", 2 * LARGE)
    array = np.random.default_rng(7).integers(0, 256, LARGE, np.uint8)
    shared_memory.set_shared_memory_region(handle, [array])
    inputs, outputs = (
        [client.input("IN", array, "UINT8", "large")],
        [client.output("OUT", "large", LARGE, LARGE)],
    )
    for _ in range(2):
        client.call("infer", model, inputs, outputs=outputs)
        copied = shared_memory.get_contents_as_numpy(handle, np.uint8, [LARGE], offset=LARGE)
        assert (copied == array).all()
        array = array[::-1].copy()
        shared_memory.set_shared_memory_region(handle, [array])


def test_regions_are_listed_and_unregistered(client: Client, region: Callable[..., Any]) -> None:
    region("b", 8192, offset=4096, byte_size=64)
    region("a", 64)
    assert [(each["name"], each["offset"], each["byte_size"]) for each in status(client)] == [
        ("a", 0, 64),
        ("b", 4096, 64),
    ]
    assert status(client, "b")[0]["key"].startswith("/tritonpy-")
    client.call("unregister_system_shared_memory", "a")
    client.call("unregister_system_shared_memory", "never there")
    assert [each["name"] for each in status(client)] == ["b"]
    client.call("unregister_system_shared_memory")
    assert status(client) == []
    found = client.call("get_cuda_shared_memory_status")
    assert found == [] or not found.regions


def test_errors_are_tritons(client: Client, region: Callable[..., Any]) -> None:
    handle = region("r", 64)
    shared_memory.set_shared_memory_region(handle, [LEFT])
    small = client.input("INPUT0", LEFT, "INT32", "r")
    other = client.protocol.InferInput("INPUT1", [1, 16], "INT32").set_data_from_numpy(RIGHT)

    def refused(text: str, method: str, *arguments: Any, **named: Any) -> None:
        with pytest.raises(InferenceServerException) as refusal:
            client.call(method, *arguments, **named)
        assert text in refusal.value.message()

    refused(
        "shared memory region 'r' already in manager",
        "register_system_shared_memory",
        "r",
        "/other",
        64,
    )
    refused(
        "Unable to open shared memory region: '/not-there'",
        "register_system_shared_memory",
        "s",
        "/not-there",
        64,
    )
    refused(
        "failed to register shared memory region 's': invalid args",
        "register_system_shared_memory",
        "s",
        status(client)[0]["key"],
        65,
    )
    refused(
        "Unable to find system shared memory region: 'gone'",
        "get_system_shared_memory_status",
        "gone",
    )
    refused(
        "is registered as system shared memory, not CUDA shared memory",
        "get_cuda_shared_memory_status",
        "r",
    )
    gone = client.input("INPUT0", LEFT, "INT32", "gone")
    refused("Unable to find shared memory region: 'gone'", "infer", "add_sub", [gone, other])
    beyond = client.input("INPUT0", LEFT, "INT32", "r", 4)
    refused(
        "Invalid offset + byte size for shared memory region: 'r'",
        "infer",
        "add_sub",
        [beyond, other],
    )
    output = client.output("OUTPUT0", "r", 60)
    text = "shared memory size specified with the request for output 'OUTPUT0' (60 bytes) should be at least 64 bytes to hold the results"
    refused(text, "infer", "add_sub", [small, other], outputs=[output])


def test_an_unregistered_region_stays_while_a_request_uses_it(
    client: Client, region: Callable[..., Any], tmp_path: Path
) -> None:
    handle = region("busy", 2048)
    folder = np.zeros(1024, np.uint8)
    folder[: len(str(tmp_path))] = np.frombuffer(str(tmp_path).encode(), np.uint8)
    shared_memory.set_shared_memory_region(handle, [folder])
    inputs, outputs = (
        [client.input("IN", folder, "UINT8", "busy")],
        [client.output("OUT", "busy", 1024, 1024)],
    )
    responses: list[Any] = []
    # The request has its own client, because this one continues meanwhile.
    second_client = Client(client.protocol.__name__.rpartition(".")[2], client.served)
    thread = threading.Thread(
        target=lambda: responses.append(
            second_client.call("infer", "waiting", inputs, outputs=outputs)
        )
    )
    thread.start()
    client.served.wait((tmp_path / "arrived").exists, "the request arrives")
    client.call("unregister_system_shared_memory", "busy")
    assert [each["name"] for each in status(client)] == ["busy"]
    with pytest.raises(InferenceServerException, match="already in manager"):
        client.call("register_system_shared_memory", "busy", "/other", 64)
    (tmp_path / "go").touch()
    thread.join()
    second_client.close()
    assert shape_of(responses[0], "OUT") == [1024]
    assert (
        shared_memory.get_contents_as_numpy(handle, np.uint8, [1024], offset=1024) == folder
    ).all()
    assert status(client) == []


def test_a_truncated_region_is_an_error_and_the_server_survives(
    client: Client, region: Callable[..., Any]
) -> None:
    region("cut", 1 << 20)
    os.truncate(f"/dev/shm{status(client)[0]['key']}", 4096)
    far = client.input("INPUT0", LEFT, "INT32", "cut", 8192)
    near = client.protocol.InferInput("INPUT1", [1, 16], "INT32").set_data_from_numpy(RIGHT)
    near_too = client.protocol.InferInput("INPUT0", [1, 16], "INT32").set_data_from_numpy(LEFT)
    for inputs, outputs in (
        ([far, near], None),
        ([near_too, near], [client.output("OUTPUT0", "cut", 64, 8192)]),
    ):
        with pytest.raises(
            InferenceServerException,
            match=r"Invalid offset \+ byte size for shared memory region: 'cut'",
        ):
            client.call("infer", "add_sub", inputs, outputs=outputs)
    assert (
        client.call("infer", "add_sub", [near_too, near]).as_numpy("OUTPUT0") == LEFT + RIGHT
    ).all()


def test_client_shared_memory_is_off_by_default(client: Client, server: Any) -> None:
    kind = "http" if client.protocol is tritonclient.http else "grpc"
    with contextlib.closing(Client(kind, server)) as other:
        for method, arguments in (
            ("register_system_shared_memory", ("r", "/key", 64)),
            ("unregister_system_shared_memory", ()),
            ("register_cuda_shared_memory", ("r", b"AAAA", 0, 64)),
            ("unregister_cuda_shared_memory", ("r",)),
        ):
            with pytest.raises(InferenceServerException) as refusal:
                other.call(method, *arguments)
            text = "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
            assert refusal.value.message() == text
        assert status(other) == []


def test_the_example_of_the_page_works(sharing: Any) -> None:
    page = (Path(__file__).parent.parent / "docs" / "shared_memory.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    code = code.replace("localhost:8000", sharing.http).replace(
        "/my_tensors", f"/tritonpy-{secrets.token_hex(6)}"
    )
    example = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (example.stdout, example.returncode) == ("[[0. 1. 2. 3.]]\n", 0), example.stderr


@pytest.mark.skipif(
    not PERF_ANALYZER,
    reason="needs the real perf_analyzer: set TRITONPY_PERF_ANALYZER; `bash tests/conformance/oracle.sh DIR` makes DIR/bin/perf_analyzer",
)
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_real_perf_analyzer_measures_with_shared_memory(
    sharing: Any, tmp_path: Path, protocol: str
) -> None:
    report = tmp_path / "report.csv"
    done = subprocess.run(
        [
            PERF_ANALYZER, "-m", "add_sub", "-i", protocol, "-u", getattr(sharing, protocol), "-b", "2", "-f", str(report), "--shared-memory=system",
            "--concurrency-range=4", "--measurement-mode=count_windows", "--measurement-request-count=50", "--max-trials=5", "--stability-percentage=999",
        ],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    assert "error" not in printed.lower(), printed
    with report.open(newline="") as file:
        measured = next(csv.DictReader(file))
    assert float(measured["Inferences/Second"]) > 0
    assert sharing.request("/v2/systemsharedmemory/status").json() == []
