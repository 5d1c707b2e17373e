from __future__ import annotations

import numpy as np
import pytest
import torch

CONFIG = """
    name: "m" backend: "pytorch" input { name: "x" data_type: TYPE_FP32 dims: -1 } output { name: "OUT__0" data_type: TYPE_FP32 dims: -1 }
"""


class Same(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class Writing(torch.nn.Module):
    """Adds one in place; the other branch does not modify its input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.add_(1.0) if bool(x[0] > 0) else x + 1


class Counting(torch.nn.Module):
    """Returns memory that it keeps and overwrites in the next run."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.total.add_(x)


def ask(harness, *values):
    request = harness.request({"x": np.array(values, np.float32)})
    [[answer]] = harness.execute(request)
    assert answer.error is None, answer.error
    return request.inputs["x"].data, answer.outputs[0].data


def test_inputs_are_not_copied_after_a_run_without_writes(models, load):
    models.script(Same())
    with load(CONFIG) as harness:
        given, first = ask(harness, 1, 2)
        assert not np.shares_memory(given, first)
        given, second = ask(harness, 3, 4)
    assert np.shares_memory(given, second)
    assert (first.tolist(), second.tolist()) == ([1, 2], [3, 4])


@pytest.mark.parametrize("first", [1, -1])
def test_a_model_that_writes_to_its_inputs_gets_copies(models, load, first):
    models.script(Writing())
    with load(CONFIG) as harness:
        ask(harness, first)
        if first < 0:
            ask(harness, 1)  # it writes to its inputs after a run without writes
        given, answer = ask(harness, 5)
    assert (given.tolist(), answer.tolist()) == ([5], [6])


def test_outputs_in_weights_are_copied(models, load):
    models.script(Counting())
    with load(CONFIG) as harness:
        _, first = ask(harness, 1, 2)
        _, second = ask(harness, 1, 2)
    assert (first.tolist(), second.tolist()) == ([1, 2], [2, 4])


@pytest.mark.parametrize("mode", ["true", "false"])
def test_a_model_runs_in_inference_mode_by_default(models, load, mode):
    models.python(
        "import torch\nclass Net(torch.nn.Module):\n  def forward(self, x):\n    return x + torch.is_inference_mode_enabled()\n",
        None,
    )
    settings = {
        "isolation": "thread",
        "INFERENCE_MODE": mode,
        "TORCH_COMPILE_OPTIONAL_PARAMETERS": '{\\"disable\\": true}',
    }
    text = CONFIG + "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
        for key, value in settings.items()
    )
    with load(text) as harness:
        assert ask(harness, 1)[1].tolist() == [2 if mode == "true" else 1]


def test_channels_last_changes_the_layout_and_nothing_else(models, load):
    models.python(
        "import torch\nclass Net(torch.nn.Module):\n  def forward(self, x):\n"
        "    return x + 0, torch.full((1,), x.is_contiguous(memory_format=torch.channels_last))\n", None,
    )  # fmt: skip
    text = """name: "m" backend: "pytorch" input { name: "x" data_type: TYPE_FP32 dims: [1, 3, 4, 5] }
        output [{ name: "a" data_type: TYPE_FP32 dims: [1, 3, 4, 5] }, { name: "b" data_type: TYPE_BOOL dims: 1 }]
        parameters { key: "isolation" value { string_value: "thread" } }
        parameters { key: "CHANNELS_LAST" value { string_value: "true" } }
        parameters { key: "TORCH_COMPILE_OPTIONAL_PARAMETERS" value { string_value: "{\\"backend\\": \\"eager\\"}" } }"""
    image = np.arange(60, dtype=np.float32).reshape(1, 3, 4, 5)
    with load(text) as harness:
        [[answer]] = harness.execute(harness.request({"x": image}))
    assert answer.error is None, answer.error
    same, is_last = [tensor.numpy() for tensor in answer.outputs]
    assert np.array_equal(same, image)
    assert is_last.tolist() == [True]
