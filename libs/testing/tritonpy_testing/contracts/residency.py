"""The contract of residency policies."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import Backend, InstanceContext, InvalidArgument, ModelContext, hookimpl
from tritonpy.repository import ResidencyPolicy
from tritonpy_testing.client.exception import InferenceServerException
from tritonpy_testing.client.in_process_client import InProcessClient
from tritonpy_testing.client.infer_input import InferInput
from tritonpy_testing.contracts.plugin import PluginContract
from tritonpy_testing.in_process_server import running_server
from tritonpy_testing.model_repository import ModelRepository

Array = npt.NDArray[Any]
CONFIG = """
    backend: "contract"
    input {{ name: "IN" data_type: TYPE_FP32 dims: 2 }}
    output {{ name: "OUT" data_type: TYPE_FP32 dims: 2 }}
    parameters {{ key: "memory_bytes" value {{ string_value: "{0}" }} }}
    parameters {{ key: "broken" value {{ string_value: "{1}" }} }}
"""
WAITING = 4


class LoadCounter:
    """Registers a backend that doubles its input, and counts its loads by model."""

    def __init__(self) -> None:
        self.loads: Counter[str] = Counter()
        self._lock = threading.Lock()

    def record(self, model: str) -> None:
        """Count a load of `model`."""
        with self._lock:
            self.loads[model] += 1

    @hookimpl
    def tritonpy_backends(self) -> Mapping[str, type[Backend]]:
        counter = self

        class ContractBackend(Backend):
            def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
                super().__init__(model, instance)
                counter.record(model.name)
                if model.parameters["broken"] == "yes":
                    raise InvalidArgument("this model is broken")

            def infer(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
                return {"OUT": inputs["IN"] * 2}

        return {"contract": ContractBackend}


class ResidencyPolicyContract(PluginContract):
    """The contract of `ResidencyPolicy`. Set `plugin_class`, `name` and `plugin`.

        class TestLru(ResidencyPolicyContract):
            plugin_class = LruPolicy
            plugin = my_plugin
            name = "lru"

    The tests run a server with lazy models and without the installed plugins. A server looks up
    the name "lru".
    """

    interface = ResidencyPolicy
    hook = "tritonpy_residency_policies"

    @contextmanager
    def serving(self, folder: Path, **memory: Any) -> Iterator[tuple[InProcessClient, LoadCounter]]:
        """Run a server with the lazy models in `folder`; `memory` is a section of server.yaml."""
        counter = LoadCounter()
        config = {
            "repositories": [{"url": str(folder)}],
            "frontends": {"http": False, "grpc": False, "metrics": False},
            "control": {"mode": "explicit", "load": ["*"]},
            "memory": {"lazy": ["*"], "wait_s": 20} | memory,
        }
        with running_server(config, [counter, self.plugin], installed=False) as server:
            yield InProcessClient(server), counter

    def test_a_lazy_model_is_ready_and_loads_at_its_first_request(self, tmp_path: Path) -> None:
        _add(tmp_path, "a", "b")
        with self.serving(tmp_path) as (client, counter):
            assert client.is_model_ready("a")
            assert counter.loads == {}
            assert "READY" not in _states(client).values()
            assert (_infer(client, "a", 3) == 6).all()
            assert counter.loads == {"a": 1}
            assert _states(client)["a"] == "READY"

    def test_requests_that_wait_share_one_load(self, tmp_path: Path) -> None:
        _add(tmp_path, "a")
        with self.serving(tmp_path) as (client, counter), ThreadPoolExecutor(WAITING) as pool:
            answers = pool.map(lambda number: _infer(client, "a", number), range(WAITING))
            assert [answer.tolist() for answer in answers] == [
                [2.0 * number] * 2 for number in range(WAITING)
            ]
            assert counter.loads == {"a": 1}

    def test_a_failed_load_fails_its_requests(self, tmp_path: Path) -> None:
        _add(tmp_path, "a", broken="yes")
        with self.serving(tmp_path) as (client, _):
            assert "this model is broken" in _refusal(client, "a")
            assert not client.is_model_ready("a")

    def test_an_idle_model_is_evicted_for_another_and_loads_again(self, tmp_path: Path) -> None:
        _add(tmp_path, "a", "b")
        with self.serving(tmp_path, budget="1MiB") as (client, counter):
            for name in ("a", "b", "a"):
                assert (_infer(client, name, 3) == 6).all()
                assert [each for each, state in _states(client).items() if state == "READY"] == [
                    name
                ]
            assert counter.loads == {"a": 2, "b": 1}

    def test_a_pinned_model_is_never_evicted(self, tmp_path: Path) -> None:
        _add(tmp_path, "a", "b")
        with self.serving(tmp_path, budget="1MiB", pinned=["a"]) as (client, counter):
            assert (_infer(client, "a", 3) == 6).all()
            assert _refusal(client, "b")
            assert (_infer(client, "a", 4) == 8).all()
            assert counter.loads == {"a": 1}

    def test_a_model_that_never_fits_is_refused_and_not_built(self, tmp_path: Path) -> None:
        _add(tmp_path, "a", size="2MiB")
        with self.serving(tmp_path, budget="1MiB") as (client, counter):
            assert _refusal(client, "a")
            assert counter.loads == {}

    def test_a_model_that_a_client_unloads_is_not_loaded_by_a_request(self, tmp_path: Path) -> None:
        _add(tmp_path, "a")
        with self.serving(tmp_path) as (client, counter):
            assert (_infer(client, "a", 3) == 6).all()
            client.unload_model("a")
            assert _refusal(client, "a")
            assert counter.loads == {"a": 1}


def _add(folder: Path, *names: str, size: str = "1MiB", broken: str = "no") -> None:
    for name in names:
        ModelRepository(folder).add(name, config=CONFIG.format(size, broken))


def _states(client: InProcessClient) -> dict[str, str]:
    return {line["name"]: line["state"] for line in client.get_model_repository_index()}


def _refusal(client: InProcessClient, model: str) -> str:
    """Return the text of the error that `model` responds with."""
    try:
        _infer(client, model, 1)
    except InferenceServerException as error:
        return str(error)
    raise AssertionError(f"the request for '{model}' should fail")


def _infer(client: InProcessClient, model: str, value: float) -> Array:
    data = InferInput("IN", [2], "FP32").set_data_from_numpy(np.full(2, value, np.float32))
    output = client.infer(model, [data]).as_numpy("OUT")
    assert output is not None, "the response has no output OUT"
    return output
