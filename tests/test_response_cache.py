"""The response cache on whole servers: flags, clients, shared memory, metrics and reloads."""

from __future__ import annotations

import contextlib
import re
import secrets
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import shared_memory

from tests.conftest import Models, tensors_text

CACHED = "response_cache { enable: true }\n"
COUNTING = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.calls = 0

    def execute(self, requests):
        return [self.respond(request) for request in requests]

    def respond(self, request):
        self.calls += 1
        given = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        calls = np.array([self.calls], np.int32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", given + FACTOR), pb_utils.Tensor("CALLS", calls)])
"""
CONFIG = f"""
backend: "python"
{tensors_text("FP32", "-1")}
output [{{ name: "CALLS" data_type: TYPE_INT32 dims: [1] }}]
{CACHED}
"""


def write(models: Models, factor: int = 1) -> None:
    """Write a model that adds `factor` and returns the number of its executions."""
    models.repository.add(
        "counting", CONFIG, {1: {"model.py": COUNTING.replace("FACTOR", str(factor))}}
    )


@pytest.fixture(scope="module")
def cached(serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server with a cache, a Python model in a process and an ONNX model in a thread."""
    models = Models(tmp_path_factory.mktemp("cached") / "models")
    write(models)
    models.identity(
        "same", "FP32", ["batch", 4], f"max_batch_size: 8\n{tensors_text('FP32', '4')}{CACHED}"
    )
    flags = ("--cache-config=local,size=1MiB", "--allow-client-shm=true")
    with serve(f"--model-repository={models.path}", *flags) as served:
        yield served


@pytest.fixture(params=["http", "grpc"])
def client(request: pytest.FixtureRequest, cached: Any) -> Iterator[Any]:
    module = getattr(tritonclient, request.param)
    with module.InferenceServerClient(getattr(cached, request.param)) as made:
        yield made, module


def given(module: Any, array: np.ndarray[Any, Any], name: str = "IN") -> Any:
    made = module.InferInput(name, list(array.shape), "FP32")
    made.set_data_from_numpy(array)
    return made


def fresh() -> np.ndarray[Any, Any]:
    """Return an input that no request has used."""
    return np.frombuffer(secrets.token_bytes(4), np.uint16).astype(np.float32)


def test_the_second_response_comes_from_the_cache(client: Any) -> None:
    http_client, module = client
    question = given(module, fresh())
    responses = [
        http_client.infer("counting", [question], request_id=name) for name in ("first", "second")
    ]
    assert responses[0].as_numpy("CALLS") == responses[1].as_numpy("CALLS")
    assert responses[0].as_numpy("OUT").tolist() == responses[1].as_numpy("OUT").tolist()
    assert http_client.infer("counting", [given(module, fresh())]).as_numpy("CALLS") > responses[
        1
    ].as_numpy("CALLS")


def test_the_cache_is_shared_between_protocols(cached: Any) -> None:
    array, found = fresh(), []
    for module, address in ((tritonclient.http, cached.http), (tritonclient.grpc, cached.grpc)):
        with module.InferenceServerClient(address) as http_client:
            found.append(
                int(http_client.infer("counting", [given(module, array)]).as_numpy("CALLS")[0])
            )
    assert found[0] == found[1]


def test_a_model_in_a_thread_is_cached_too(client: Any, cached: Any) -> None:
    http_client, module = client
    array = np.resize(fresh(), (2, 4))
    before = executions(cached, "same")
    for _ in range(3):
        assert (
            http_client.infer("same", [given(module, array)]).as_numpy("OUT").tolist()
            == array.tolist()
        )
    assert executions(cached, "same") == before + 1


def executions(served: Any, model: str) -> int:
    return int(
        served.request(f"/v2/models/{model}/stats").json()["model_stats"][0]["execution_count"]
    )


@contextlib.contextmanager
def region(http_client: Any, size: int) -> Iterator[tuple[str, Any]]:
    """Register memory for the duration of a test; yield its name and tritonclient's handle."""
    name = f"cached-{secrets.token_hex(4)}"
    handle = shared_memory.create_shared_memory_region(name, f"/{name}", size)
    http_client.register_system_shared_memory(name, f"/{name}", size)
    try:
        yield name, handle
    finally:
        http_client.unregister_system_shared_memory(name)
        shared_memory.destroy_shared_memory_region(handle)


def test_a_hit_is_written_into_the_region_of_its_client(client: Any) -> None:
    http_client, module = client
    array = fresh()
    http_client.infer(
        "counting", [given(module, array)], outputs=[module.InferRequestedOutput("OUT")]
    )
    with region(http_client, 64) as (name, handle):
        wanted = module.InferRequestedOutput("OUT")
        wanted.set_shared_memory(name, array.nbytes)
        http_client.infer("counting", [given(module, array)], outputs=[wanted])
        assert (
            shared_memory.get_contents_as_numpy(handle, np.float32, [2]).tolist()
            == (array + 1).tolist()
        )


def test_a_region_that_is_too_small_for_a_hit_is_an_error(client: Any) -> None:
    http_client, module = client
    array = fresh()
    wanted = module.InferRequestedOutput("OUT")
    http_client.infer("counting", [given(module, array)], outputs=[wanted])
    with region(http_client, 64) as (name, _handle):
        wanted.set_shared_memory(name, 4)
        with pytest.raises(Exception, match="should be at least 8 bytes to hold the results"):
            http_client.infer("counting", [given(module, array)], outputs=[wanted])


def test_shared_memory_inputs_are_looked_up_by_content(client: Any) -> None:
    http_client, module = client
    first, second = fresh(), fresh() + 100_000
    with region(http_client, 64) as (name, handle):
        question = module.InferInput("IN", [2], "FP32")
        question.set_shared_memory(name, 8)
        found = []
        for array in (first, second, first):
            shared_memory.set_shared_memory_region(handle, [array])
            response = http_client.infer("counting", [question])
            assert response.as_numpy("OUT").tolist() == (array + 1).tolist()
            found.append(int(response.as_numpy("CALLS")[0]))
        assert found[0] == found[2] < found[1]
        assert (
            int(http_client.infer("counting", [given(module, first)]).as_numpy("CALLS")[0])
            == found[0]
        )


def test_statistics_and_metrics_count_hits_and_misses(cached: Any) -> None:
    before = numbers(cached)
    array = fresh()
    with tritonclient.http.InferenceServerClient(cached.http) as http_client:
        for _ in range(3):
            http_client.infer("counting", [given(tritonclient.http, array)])
    grown = {name: value - before[name] for name, value in numbers(cached).items()}
    assert grown == {
        "cache_hit": 2, "cache_miss": 1, "success": 3, "nv_cache_num_hits_per_model": 2, "nv_cache_num_misses_per_model": 1,
        "nv_inference_request_success": 3, "nv_inference_exec_count": 1, "nv_cache_num_lookups": 3,
    }  # fmt: skip


def numbers(served: Any) -> dict[str, int]:
    (statistics,) = served.request("/v2/models/counting/stats").json()["model_stats"]
    found = {
        name: statistics["inference_stats"][name]["count"]
        for name in ("cache_hit", "cache_miss", "success")
    }
    with urllib.request.urlopen(f"http://127.0.0.1:{served.ports['metrics']}/metrics") as response:
        text = response.read().decode()
    for name in (
        "nv_cache_num_hits_per_model",
        "nv_cache_num_misses_per_model",
        "nv_inference_request_success",
        "nv_inference_exec_count",
    ):
        found[name] = int(
            re.search(rf'^{name}{{model="counting",version="1"}} (\d+)$', text, re.MULTILINE)[1]
        )  # type: ignore[index]
    found["nv_cache_num_lookups"] = int(
        re.search(r"^nv_cache_num_lookups (\d+)$", text, re.MULTILINE)[1]
    )  # type: ignore[index]
    return found


def test_a_reload_invalidates_cached_responses(serve: Any, models: Models) -> None:
    write(models, factor=1)
    flags = (
        "--model-control-mode=explicit",
        "--load-model=counting",
        "--response-cache-byte-size=1048576",
    )
    with (
        serve(f"--model-repository={models.path}", *flags) as served,
        tritonclient.http.InferenceServerClient(served.http) as http_client,
    ):
        array = fresh()
        question = [given(tritonclient.http, array)]
        assert (
            http_client.infer("counting", question).as_numpy("OUT").tolist() == (array + 1).tolist()
        )
        (models.path / "counting" / "1" / "model.py").write_text(COUNTING.replace("FACTOR", "2"))
        http_client.load_model("counting")
        assert (
            http_client.infer("counting", question).as_numpy("OUT").tolist() == (array + 2).tolist()
        )


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--cache-config=local,size=100"], "'size' must be at least 192 bytes"),
        (["--cache-config=local,size=abc"], "--cache-config"),
        (["--response-cache-byte-size=0"], "config didn't contain a valid 'size' field"),
        (["--cache-config=local,size=4096", "--cache-config=redis,host=h"], "only a single cache is currently supported"),
        (["--cache-config=nowhere,size=1"], "response cache 'nowhere'"),
    ],
)  # fmt: skip
def test_an_invalid_cache_configuration_is_a_startup_error(
    serve: Any, models: Models, flags: list[str], expected: str
) -> None:
    write(models)
    with serve(f"--model-repository={models.path}", *flags, until=None) as served:
        assert served.wait_until_exit() != 0
        assert expected in served.log
