"""The contract of runner factories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tritonpy import Backend, InstanceContext, InvalidArgument, ModelContext, hookimpl
from tritonpy.execution import RunnerFactory
from tritonpy_testing.client.exception import InferenceServerException
from tritonpy_testing.client.in_process_client import InProcessClient
from tritonpy_testing.client.infer_input import InferInput
from tritonpy_testing.contracts.plugin import PluginContract
from tritonpy_testing.in_process_server import running_server
from tritonpy_testing.model_repository import ModelRepository

Array = npt.NDArray[Any]
INSTANCES = 2
CONFIG = f"""
    backend: "contract" max_batch_size: 4
    input {{ name: "IN" data_type: TYPE_FP32 dims: 2 }}
    output {{ name: "OUT" data_type: TYPE_FP32 dims: 2 }}
    instance_group {{ count: {INSTANCES} kind: KIND_CPU }}
"""


class ContractBackend(Backend):
    """Doubles its input and rejects negative values.

    With the parameter `broken` it does not load.
    """

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        if "broken" in model.parameters:
            raise InvalidArgument("this model is broken")

    def infer(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        if (inputs["IN"] < 0).any():
            raise InvalidArgument("a value is negative")
        return {"OUT": inputs["IN"] * 2}


class _Backends:
    @staticmethod
    @hookimpl
    def tritonpy_backends() -> Mapping[str, type[Backend]]:
        return {"contract": ContractBackend}


class RunnerFactoryContract(PluginContract):
    """The contract of `RunnerFactory`.

    Set `plugin_class`, `name`, and `plugin` unless it is installed.

        class TestInline(RunnerFactoryContract):
            plugin_class = InlineFactory
            plugin = my_plugin
            name = "inline"

    The tests run a server whose model has two instances.
    """

    interface = RunnerFactory
    hook = "tritonpy_runners"
    installed: ClassVar[bool] = False  # whether the plugin is found by its entry point

    @contextmanager
    def serving(self, folder: Path, parameters: str = "") -> Iterator[InProcessClient]:
        """Run a server with a model in `folder`, whose instances the factory executes."""
        isolation = f'parameters {{ key: "isolation" value {{ string_value: "{self.name}" }} }}'
        ModelRepository(folder).add("doubled", config=f"{CONFIG} {isolation} {parameters}")
        frontends = {"http": False, "grpc": False, "metrics": False}
        config = {
            "repositories": [{"url": str(folder)}],
            "frontends": frontends,
            "control": {"mode": "explicit"},
        }
        plugins: Sequence[Any] = (
            [_Backends] if self.installed or self.plugin is None else [_Backends, self.plugin]
        )
        with running_server(config, plugins) as server:
            yield InProcessClient(server)

    def test_every_request_gets_its_own_answer(self, tmp_path: Path) -> None:
        with self.serving(tmp_path) as client:
            client.load_model("doubled")
            for number in range(4 * INSTANCES):
                assert (_infer(client, number) == 2 * number).all()

    def test_the_error_of_a_request_reaches_its_client_and_no_other(self, tmp_path: Path) -> None:
        with self.serving(tmp_path) as client:
            client.load_model("doubled")
            try:
                _infer(client, -1)
            except InferenceServerException as error:
                assert "a value is negative" in str(error)
            else:
                raise AssertionError("the error of the instance was lost")
            assert (_infer(client, 3) == 6).all()

    def test_a_model_that_fails_to_load_reports_its_error(self, tmp_path: Path) -> None:
        with self.serving(
            tmp_path, 'parameters { key: "broken" value { string_value: "1" } }'
        ) as client:
            try:
                client.load_model("doubled")
            except InferenceServerException as error:
                assert "this model is broken" in str(error)
            else:
                raise AssertionError("a broken model counts as loaded")

    def test_an_unloaded_model_can_be_loaded_again(self, tmp_path: Path) -> None:
        with self.serving(tmp_path) as client:
            for number in range(2):
                client.load_model("doubled")
                assert (_infer(client, number) == 2 * number).all()
                client.unload_model("doubled")


def _infer(client: InProcessClient, value: float) -> Array:
    data = InferInput("IN", [1, 2], "FP32").set_data_from_numpy(np.full((1, 2), value, np.float32))
    output = client.infer("doubled", [data]).as_numpy("OUT")
    assert output is not None, "the response has no output OUT"
    return output
