from __future__ import annotations

import pytest
import torch
from torch.export import Dim

from tritonpy import InvalidArgument
from tritonpy_backend_torch.archive import open_records
from tritonpy_backend_torch.exported_signature import exported_signature, program_of
from tritonpy_backend_torch.signature import ANY_ROWS, Signature, TensorInfo, TensorSpec

from .models import AddSub, Linear


class Nested(torch.nn.Module):
    def forward(self, x, options, *, factor: int, flag):
        return {"sum": x * factor, "pair": (options["a"], options["b"] + flag)}


def read(path):
    with open_records(path) as found:
        return exported_signature(program_of(found))


def test_arguments_of_forward_and_numbers_name_plain_tensors(models):
    assert read(models.linear_export()) == Signature(
        (TensorSpec(("x", "ARGS[0]", "INPUT__0"), TensorInfo("FP32", (-1, 3))),),
        (TensorSpec(("OUTPUT__0", "RESULT"), TensorInfo("FP32", (-1, 2))),),
        ANY_ROWS,
    )


def test_structures_are_named_by_path_and_constants_are_kept(models):
    rows = {0: Dim("rows")}
    one = torch.zeros(3, 1)
    path = models.export(
        Nested(),
        (one, {"a": one, "b": one}),
        {"x": rows, "options": {"a": rows, "b": rows}, "factor": None, "flag": rows},
        {"factor": 3, "flag": one},
    )
    found = read(path)
    assert [spec.names for spec in found.client_inputs] == [
        ("x", "ARGS[0]", "INPUT__0"), ("ARGS[1][a]", "INPUT__1"), ("ARGS[1][b]", "INPUT__2"), ("flag", "KWARGS[flag]", "INPUT__3"),
    ]  # fmt: skip
    assert [
        (spec.names, spec.default) for spec in found.inputs if spec not in found.client_inputs
    ] == [((), 3)]
    assert [spec.names for spec in found.outputs] == [
        ("sum", "OUTPUT__0", "RESULT[sum]"), ("OUTPUT__1", "RESULT[pair][0]"), ("OUTPUT__2", "RESULT[pair][1]"),
    ]  # fmt: skip
    assert found.is_complete
    assert found.input_numbers()["INPUT__3"] == 4


@pytest.mark.parametrize(
    ("limits", "rows"),
    [({}, ANY_ROWS), ({"max": 16}, 16), ({"min": 1, "max": 5}, 5), ({"min": 4, "max": 16}, 0)],
)
def test_a_batch_has_as_many_rows_as_the_program_was_exported_for(models, limits, rows):
    class Halves(torch.nn.Module):
        def forward(self, x):
            return x / 2

    path = models.export(Halves(), (torch.zeros(5, 3),), {"x": {0: Dim("rows", **limits)}})
    assert read(path).max_rows == rows


@pytest.mark.parametrize(
    "shapes",
    [
        {"INPUT0": None, "INPUT1": None},
        {"INPUT0": {1: Dim("columns")}, "INPUT1": {1: Dim("columns")}},
    ],
)
def test_a_fixed_first_dimension_prevents_batching(models, shapes):
    one = torch.zeros(4, 3)
    found = read(models.export(AddSub(), (one, one), shapes))
    assert found.max_rows == 0
    assert found.is_complete


def test_an_output_with_other_rows_prevents_batching(models):
    class Doubled(torch.nn.Module):
        def forward(self, x):
            return torch.cat([x, x])

    found = read(models.export(Doubled(), (torch.zeros(4, 3),), {"x": {0: Dim("rows")}}))
    assert found.outputs[0].info == TensorInfo("FP32", (-1, 3))
    assert found.max_rows == 0


def test_an_unsupported_type_has_no_info(models):
    class Complex(torch.nn.Module):
        def forward(self, x):
            return torch.fft.fft(x)

    found = read(models.export(Complex(), (torch.zeros(4),)))
    assert found.outputs[0].info is None
    assert not found.is_complete


def test_a_program_of_another_name_is_refused(models):
    path = models.at("other.pt2")
    program = torch.export.export(Linear(), (torch.zeros(3, 3),))
    from torch.export.pt2_archive._package import package_pt2

    package_pt2(path, exported_programs={"encoder": program})
    with (
        open_records(path) as found,
        pytest.raises(InvalidArgument, match="has no program named 'model', it has: 'encoder'"),
    ):
        program_of(found)
