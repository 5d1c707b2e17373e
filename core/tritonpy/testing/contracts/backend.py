"""The contract of backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tritonpy.api.backend import Backend
from tritonpy.api.engine import MemoryUsage
from tritonpy.testing.backend_harness import BackendHarness
from tritonpy.testing.contracts.optional import given, only_where
from tritonpy.testing.contracts.plugin import PluginContract
from tritonpy.testing.parse import model_config
from tritonpy.testing.sample_inputs import random_inputs
from tritonpy.types import InferRequest, InferResponse

Array = npt.NDArray[Any]
SEED = 20


class BackendContract(PluginContract):
    """What `Backend` promises. Give `plugin_class` and `config`, and write the model's files in `write_model`.

    class TestDoubler(BackendContract):
        plugin_class = Doubler
        config = 'backend: "doubler" max_batch_size: 8 input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { … }'

    `config` must be complete unless `auto_complete` adds what is missing. `make_inputs` gives random values unless
    overridden. Override `bad_inputs` where some inputs make the model fail: then failures are checked too. Where `config` has the
    parameter `isolation: process`, the same is checked of instances that are processes.
    """

    interface = Backend
    hook = "tritonpy_backends"
    config: ClassVar[str]
    tolerance: ClassVar[float] = 1e-5  # relative and absolute, between a row alone and the same row in a batch

    def write_model(self, version_folder: Path) -> None:
        """Write the files of a version (optional)."""

    def make_inputs(self, harness: BackendHarness, random: Random, rows: int) -> dict[str, Array]:
        """Return inputs of one request; shapes beside the rows must not vary (optional)."""
        return random_inputs(harness.model.config, random, rows)

    def bad_inputs(self, harness: BackendHarness, random: Random) -> Mapping[str, Array]:
        """Return inputs with which the model fails (optional)."""
        raise NotImplementedError

    def load(self, folder: Path) -> BackendHarness:
        """Return the harness for a model whose files lie in `folder`; enter it to load."""
        (folder / "1").mkdir(parents=True, exist_ok=True)
        self.write_model(folder / "1")
        return BackendHarness(self.plugin_class, model_config(self.config), folder, self.options)

    def requests(self, harness: BackendHarness, count: int) -> list[InferRequest]:
        """Return the requests of one batch: 1 or 2 rows each, or one request for a model that does not batch."""
        random = Random(SEED)
        most = harness.model.config.max_batch_size
        rows = [1] if most <= 1 else [1 + number % min(2, most // 2) for number in range(min(count, most // 2))]
        return [harness.request(self.make_inputs(harness, random, each)) for each in rows]

    def test_loads_and_answers(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            [answers] = harness.execute(*self.requests(harness, 1))
            _succeeded(answers)

    def test_every_request_of_a_batch_is_answered_exactly_once(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            for answers in harness.execute(*self.requests(harness, 4)):
                _succeeded(answers)
                if not harness.model.config.model_transaction_policy.decoupled:
                    assert len(answers) == 1, f"{len(answers)} answers from a model that is not decoupled"

    def test_outputs_have_the_configured_types_and_rows(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            requests = self.requests(harness, 3)
            for request, answers in zip(requests, harness.execute(*requests), strict=True):
                for response in _succeeded(answers):
                    _check_outputs(harness, request, response)

    def test_a_row_gives_the_same_alone_and_in_a_batch(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            together = harness.execute(*self.requests(harness, 3))
            for request, expected in zip(self.requests(harness, 3), together, strict=True):
                [alone] = harness.execute(request)
                _same_answers(_succeeded(alone), _succeeded(expected), self.tolerance)

    def test_a_requested_output_comes_alone(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            inputs = self.make_inputs(harness, Random(SEED), 1)
            for name in harness.model.output_types:
                [answers] = harness.execute(harness.request(inputs, [name]))
                for response in _succeeded(answers):
                    found = [tensor.name for tensor in response.outputs]
                    assert found == [name], f"only '{name}' was asked for, the answer has {found}"

    def test_inputs_are_left_as_they_came(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            requests = self.requests(harness, 1)
            before = [{name: tensor.data.tobytes() for name, tensor in request.inputs.items()} for request in requests]
            harness.execute(*requests)
            after = [{name: tensor.data.tobytes() for name, tensor in request.inputs.items()} for request in requests]
            assert before == after, "the backend changed an input in place"

    @only_where(given("bad_inputs"))
    def test_a_failure_answers_the_batch_and_the_instance_goes_on(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            bad = self.bad_inputs(harness, Random(SEED))
            [answers] = harness.execute(harness.request(bad))
            assert answers[-1].error is not None, "the bad inputs were answered without an error"
            assert answers[-1].error.message, "the error has no text"
            [answers] = harness.execute(*self.requests(harness, 1))
            _succeeded(answers)

    def test_two_versions_live_side_by_side(self, tmp_path: Path) -> None:
        with self.load(tmp_path / "new") as new:
            with self.load(tmp_path / "old") as old:
                [expected] = old.execute(*self.requests(old, 1))
            [answers] = new.execute(*self.requests(new, 1))
            _same_answers(_succeeded(answers), _succeeded(expected), self.tolerance)

    def test_what_it_says_of_its_memory_is_a_number_of_bytes_per_kind_and_device(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            harness.execute(*self.requests(harness, 1))
            for usage in harness.memory_usage():
                assert isinstance(usage, MemoryUsage), f"{usage!r} is no MemoryUsage"
                assert usage.type in {"CPU", "CPU_PINNED", "GPU"}, f"there is no memory of the type '{usage.type}'"
                assert isinstance(usage.id, int), f"the device is {usage.id!r}"
                assert usage.id >= 0, f"there is no device {usage.id}"
                assert isinstance(usage.byte_size, int), f"the size is {usage.byte_size!r}"
                assert usage.byte_size >= 0, f"the size is {usage.byte_size}"

    def test_close_may_come_twice(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            harness.close_instance()


def _succeeded(answers: Sequence[InferResponse]) -> list[InferResponse]:
    for response in answers:
        assert response.error is None, f"the model answered with an error: {response.error}"
    return [response for response in answers if not response.empty]


def _check_outputs(harness: BackendHarness, request: InferRequest, response: InferResponse) -> None:
    types = harness.model.output_types
    decoupled = harness.model.config.model_transaction_policy.decoupled
    if not decoupled:
        assert {tensor.name for tensor in response.outputs} == set(types), "an output of the configuration is missing"
    for tensor in response.outputs:
        assert tensor.datatype == types.get(tensor.name), f"output '{tensor.name}' came as {tensor.datatype}"
        assert tensor.numpy().shape == tensor.shape, f"output '{tensor.name}': its data does not fit its shape"
        if harness.model.config.max_batch_size > 0 and not decoupled:
            assert tensor.shape[0] == request.batch_size, f"output '{tensor.name}' has {tensor.shape[0]} rows"


def _same_answers(found: Sequence[InferResponse], expected: Sequence[InferResponse], tolerance: float) -> None:
    assert len(found) == len(expected), f"{len(found)} answers instead of {len(expected)}"
    for one, other in zip(found, expected, strict=True):
        assert [tensor.name for tensor in one.outputs] == [tensor.name for tensor in other.outputs]
        for left, right in zip(one.outputs, other.outputs, strict=True):
            assert left.shape == right.shape, f"output '{left.name}' has shape {left.shape} instead of {right.shape}"
            assert _close(left.numpy(), right.numpy(), tolerance), f"output '{left.name}' depends on the rows beside it"


def _close(left: Array, right: Array, tolerance: float) -> bool:
    if left.dtype.kind in "OSUb":
        return bool(np.array_equal(left, right))
    one, other = left.astype(np.float64), right.astype(np.float64)
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True))
