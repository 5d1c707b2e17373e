from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.export import Dim

from tritonpy import TritonError

from ..models import EAGER, Linear

ALONE = 'name: "m" backend: "pytorch"'


class Nested(torch.nn.Module):
    def forward(self, x, options, *, factor: int, flag):
        return {"sum": x * factor, "pair": (options["a"], options["b"] + flag)}


class Mean(torch.nn.Module):
    def forward(self, x):
        return x.mean()


def ask(harness, inputs, outputs=None):
    [[answer]] = harness.execute(harness.request(inputs, outputs))
    assert answer.error is None, answer.error
    return {tensor.name: tensor.numpy().tolist() for tensor in answer.outputs}


def test_structured_arguments_and_results_are_flattened(models, load):
    rows, (x, a, b, flag) = {0: Dim("rows")}, torch.zeros(4, 3, 1).unbind()
    models.export(
        Nested(), (x, {"a": a, "b": b}),
        {"x": rows, "options": {"a": rows, "b": rows}, "factor": None, "flag": rows}, {"factor": 3, "flag": flag},
    )  # fmt: skip
    names = ("x", "ARGS[1][a]", "ARGS[1][b]", "flag")
    with load(ALONE) as harness:
        inputs = {name: np.array([[number]], np.float32) for number, name in enumerate(names, 1)}
        assert ask(harness, inputs) == {"sum": [[3]], "OUTPUT__1": [[2]], "OUTPUT__2": [[7]]}


def test_a_scalar_result_is_one_element(models, load):
    models.export(Mean(), (torch.zeros(4),))
    with load(ALONE) as harness:
        assert list(harness.model.config.output[0].dims) == [1]
        assert ask(harness, {"x": np.array([1, 2, 3, 6], np.float32)}) == {"OUTPUT__0": [3]}


def test_a_program_may_be_compiled(models, load):
    models.linear_export()
    with load(ALONE + EAGER) as harness:
        assert ask(harness, {"x": np.array([[1, 2, 3]], np.float32)}) == {"OUTPUT__0": [[6, 12]]}


def test_a_batch_size_above_the_exported_one_fails_the_load(models, load):
    models.linear_export(max=8)
    with pytest.raises(TritonError) as refused, load(ALONE + "max_batch_size: 16"):
        pass
    assert (
        refused.value.message
        == "unable to load model 'm', max_batch_size is 16, the model was exported for 8 rows at most"
    )


def test_a_mismatched_data_type_fails_the_load(models, load):
    models.linear_export()
    text = (
        ALONE
        + """ max_batch_size: 4 input { name: "x" data_type: TYPE_INT32 dims: 3 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 2 }"""
    )
    with pytest.raises(TritonError) as refused, load(text):
        pass
    assert refused.value.message == (
        "unable to load model 'm', configuration expects datatype TYPE_INT32 for input 'x', model provides TYPE_FP32"
    )


def test_a_missing_operator_is_named(models, load):
    with torch.library._scoped_library("tritonpy_test", "FRAGMENT") as library:
        library.define("half(Tensor x) -> Tensor")
        library.impl("half", lambda x: x / 2, "CompositeExplicitAutograd")
        library.impl("half", torch.empty_like, "Meta")

        class Custom(torch.nn.Module):
            def forward(self, x):
                return torch.ops.tritonpy_test.half(x)

        models.export(Custom(), (torch.ones(2),))
    with (
        pytest.raises(
            TritonError, match=r"(?s)is not a valid torch.export program: .*tritonpy_test\.half"
        ),
        load(ALONE),
    ):
        pass


def test_a_program_without_weights_is_rejected(models, load):
    import zipfile

    path = models.linear_export()
    with zipfile.ZipFile(path) as archive:
        content = {
            name: archive.read(name)
            for name in archive.namelist()
            if "/weights/weight_" not in name
        }
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    with (
        pytest.raises(
            TritonError, match=r"is not a valid torch.export program: .*data/weights/weight_0"
        ),
        load(ALONE),
    ):
        pass


def test_its_weights_are_counted(models, load):
    models.linear_export()
    with load(ALONE) as harness:
        assert [
            (usage.type, usage.id, usage.byte_size) for usage in harness.instance.memory_usage()
        ] == [("CPU", 0, sum(4 * tensor.numel() for tensor in Linear().state_dict().values()))]
