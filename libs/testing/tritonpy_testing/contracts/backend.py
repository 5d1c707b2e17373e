"""The contract of backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tritonpy import Backend, InferRequest, InferResponse, MemoryUsage
from tritonpy_testing.backend_harness import BackendHarness
from tritonpy_testing.contracts.optional import given, only_if
from tritonpy_testing.contracts.plugin import PluginContract
from tritonpy_testing.parse import model_config
from tritonpy_testing.sample_inputs import random_inputs

Array = npt.NDArray[Any]
SEED = 20


class BackendContract(PluginContract):
    """The contract of `Backend`.

    Set `plugin_class` and `config`, and write the model in `write_model`.

        class TestDoubler(BackendContract):
            plugin_class = Doubler
            config = 'backend: "doubler" max_batch_size: 8 input { … } output { … }'

    `config` must be complete unless `auto_complete` adds the missing parts. `make_inputs` returns
    random values unless overridden. Override `bad_inputs` to check failures. With the parameter
    `isolation: process` in `config`, the instances under test are processes.
    """

    interface = Backend
    hook = "tritonpy_backends"
    config: ClassVar[str]
    # relative and absolute, between results of a row alone and in a batch
    tolerance: ClassVar[float] = 1e-5

    def write_model(self, version_folder: Path) -> None:
        """Write the files of a version (optional)."""

    def make_inputs(self, harness: BackendHarness, random: Random, rows: int) -> dict[str, Array]:
        """Return inputs of one request. Only the number of rows may vary (optional)."""
        return random_inputs(harness.model.config, random, rows)

    def bad_inputs(self, harness: BackendHarness, random: Random) -> Mapping[str, Array]:
        """Return inputs that make the model fail (optional)."""
        raise NotImplementedError

    def load(self, folder: Path) -> BackendHarness:
        """Return the harness for a model whose files are in `folder`.

        Entering it loads the model.
        """
        (folder / "1").mkdir(parents=True, exist_ok=True)
        self.write_model(folder / "1")
        return BackendHarness(self.plugin_class, model_config(self.config), folder, self.options)

    def requests(self, harness: BackendHarness, count: int) -> list[InferRequest]:
        """Return the requests of one batch.

        Each request has 1 or 2 rows. A model that does not batch gets one request.
        """
        random = Random(SEED)
        most = harness.model.config.max_batch_size
        rows = (
            [1]
            if most <= 1
            else [1 + number % min(2, most // 2) for number in range(min(count, most // 2))]
        )
        return [harness.request(self.make_inputs(harness, random, each)) for each in rows]

    def test_loads_and_answers(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            [responses] = harness.execute(*self.requests(harness, 1))
            _successful_responses(responses)

    def test_every_request_of_a_batch_is_answered_exactly_once(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            for responses in harness.execute(*self.requests(harness, 4)):
                _successful_responses(responses)
                if not harness.model.config.model_transaction_policy.decoupled:
                    assert len(responses) == 1, (
                        f"{len(responses)} responses from a model that is not decoupled"
                    )

    def test_outputs_have_the_configured_types_and_rows(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            requests = self.requests(harness, 3)
            for request, responses in zip(requests, harness.execute(*requests), strict=True):
                for response in _successful_responses(responses):
                    _check_outputs(harness, request, response)

    def test_a_row_has_the_same_result_alone_and_in_a_batch(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            together = harness.execute(*self.requests(harness, 3))
            for request, expected in zip(self.requests(harness, 3), together, strict=True):
                [alone] = harness.execute(request)
                _check_same_responses(
                    _successful_responses(alone), _successful_responses(expected), self.tolerance
                )

    def test_only_requested_outputs_are_returned(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            inputs = self.make_inputs(harness, Random(SEED), 1)
            for name in harness.model.output_types:
                [responses] = harness.execute(harness.request(inputs, [name]))
                for response in _successful_responses(responses):
                    found = [tensor.name for tensor in response.outputs]
                    assert found == [name], f"only '{name}' was requested, the response has {found}"

    def test_inputs_are_not_modified(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            requests = self.requests(harness, 1)
            before = [
                {name: tensor.data.tobytes() for name, tensor in request.inputs.items()}
                for request in requests
            ]
            harness.execute(*requests)
            after = [
                {name: tensor.data.tobytes() for name, tensor in request.inputs.items()}
                for request in requests
            ]
            assert before == after, "the backend changed an input in place"

    @only_if(given("bad_inputs"))
    def test_a_failing_batch_gets_an_error_and_the_instance_keeps_working(
        self, tmp_path: Path
    ) -> None:
        with self.load(tmp_path) as harness:
            bad = self.bad_inputs(harness, Random(SEED))
            [responses] = harness.execute(harness.request(bad))
            assert responses[-1].error is not None, "the bad inputs caused no error"
            assert responses[-1].error.message, "the error has no text"
            [responses] = harness.execute(*self.requests(harness, 1))
            _successful_responses(responses)

    def test_two_versions_are_loaded_at_the_same_time(self, tmp_path: Path) -> None:
        with self.load(tmp_path / "new") as new:
            with self.load(tmp_path / "old") as old:
                [expected] = old.execute(*self.requests(old, 1))
            [responses] = new.execute(*self.requests(new, 1))
            _check_same_responses(
                _successful_responses(responses), _successful_responses(expected), self.tolerance
            )

    def test_memory_usage_gives_bytes_per_kind_and_device(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            harness.execute(*self.requests(harness, 1))
            for usage in harness.memory_usage():
                assert isinstance(usage, MemoryUsage), f"{usage!r} is no MemoryUsage"
                assert usage.type in {"CPU", "CPU_PINNED", "GPU"}, (
                    f"'{usage.type}' is no type of memory"
                )
                assert isinstance(usage.id, int), f"the device is {usage.id!r}"
                assert usage.id >= 0, f"there is no device {usage.id}"
                assert isinstance(usage.byte_size, int), f"the size is {usage.byte_size!r}"
                assert usage.byte_size >= 0, f"the size is {usage.byte_size}"

    def test_searched_settings_are_parameters_with_several_values(self) -> None:
        for dimension in self.plugin_class.search_dimensions(4):
            known = self.plugin_class.model_parameters
            assert not known or dimension.name in known, f"unknown parameter '{dimension.name}'"
            assert len(set(dimension.values)) == len(dimension.values) > 1

    def test_close_may_be_called_twice(self, tmp_path: Path) -> None:
        with self.load(tmp_path) as harness:
            harness.close_instance()


def _successful_responses(responses: Sequence[InferResponse]) -> list[InferResponse]:
    for response in responses:
        assert response.error is None, f"the model responded with an error: {response.error}"
    return [response for response in responses if not response.empty]


def _check_outputs(harness: BackendHarness, request: InferRequest, response: InferResponse) -> None:
    types = harness.model.output_types
    decoupled = harness.model.config.model_transaction_policy.decoupled
    if not decoupled:
        assert {tensor.name for tensor in response.outputs} == set(types), (
            "an output of the configuration is missing"
        )
    for tensor in response.outputs:
        assert tensor.datatype == types.get(tensor.name), (
            f"output '{tensor.name}' came as {tensor.datatype}"
        )
        assert tensor.numpy().shape == tensor.shape, (
            f"output '{tensor.name}': its data does not fit its shape"
        )
        if harness.model.config.max_batch_size > 0 and not decoupled:
            assert tensor.shape[0] == request.batch_size, (
                f"output '{tensor.name}' has {tensor.shape[0]} rows"
            )


def _check_same_responses(
    found: Sequence[InferResponse], expected: Sequence[InferResponse], tolerance: float
) -> None:
    assert len(found) == len(expected), f"{len(found)} responses instead of {len(expected)}"
    for one, other in zip(found, expected, strict=True):
        assert [tensor.name for tensor in one.outputs] == [tensor.name for tensor in other.outputs]
        for left, right in zip(one.outputs, other.outputs, strict=True):
            assert left.shape == right.shape, (
                f"output '{left.name}' has shape {left.shape} instead of {right.shape}"
            )
            assert _close(left.numpy(), right.numpy(), tolerance), (
                f"output '{left.name}' depends on other rows of the batch"
            )


def _close(left: Array, right: Array, tolerance: float) -> bool:
    if left.dtype.kind in "OSUb":
        return bool(np.array_equal(left, right))
    one, other = left.astype(np.float64), right.astype(np.float64)
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True))
