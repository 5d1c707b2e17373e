from __future__ import annotations

import pytest

from tritonpy_backend_torch.aoti_signature import aoti_signature, input_infos
from tritonpy_backend_torch.archive import open_records
from tritonpy_backend_torch.signature import Signature, TensorInfo, TensorSpec

TWO = (
    '[1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": "builtins.tuple", "context": "null", "children_spec": '
    '[{"type": null, "context": null, "children_spec": []}]}, {"type": "builtins.dict", "context": "[\\"flag\\"]", "children_spec": '
    '[{"type": null, "context": null, "children_spec": []}]}]}]'
)
SINGLE = '[1, {"type": null, "context": null, "children_spec": []}]'
CHECK = """
AOTI_NOINLINE static void check_input_%d(
    AtenTensorHandle* input_handles
) {
    int32_t arg0_1_expected_dtype = aoti_torch_dtype_%s();
    %s
}
"""
FP32, INT64 = TensorInfo("FP32", (-1, 3)), TensorInfo("INT64", (2,))


def test_types_and_shapes_come_from_checks_in_the_source(compile_module):
    with open_records(compile_module) as found:
        [source] = [name for name in found.below("") if name.endswith(".wrapper.cpp")]
        assert input_infos(found.read(source).decode()) == [TensorInfo("INT32", (-1, 16))] * 2


@pytest.mark.parametrize(
    ("bodies", "found"),
    [
        ([("float32", "if (a_size[0] < 2) {} if (a_size[0] > 9) {} if (3 != a_size[1]) {}"), ("int64", "if (2 != a_size[0]) {}")], [FP32, INT64]),
        ([("bfloat16", "")], [TensorInfo("BF16", ())]),
        ([("float32", "if (3 != a_size[1]) {}")], None),
        ([("complex64", "if (3 != a_size[0]) {}")], None),
        ([], None),
    ],
)  # fmt: skip
def test_unknown_checks_give_no_signature(bodies, found):
    assert (
        input_infos("".join(CHECK % (number, *body) for number, body in enumerate(bodies))) == found
    )


def test_inputs_and_outputs_have_the_names_of_triton():
    assert aoti_signature(TWO, SINGLE, [FP32, INT64]) == Signature(
        (
            TensorSpec(("ARGS[0]", "INPUT__0"), FP32),
            TensorSpec(("KWARGS[flag]", "INPUT__1"), INT64),
        ),
        (TensorSpec(("RESULT", "OUTPUT__0")),),
    )


def test_without_checks_only_names_are_known():
    assert [spec.info for spec in aoti_signature(TWO, SINGLE, None).inputs] == [None, None]


def test_an_included_program_gives_types_and_shapes():
    program = Signature(
        (TensorSpec(("x", "ARGS[0]", "INPUT__0"), FP32), TensorSpec((), default=3)),
        (TensorSpec(("OUTPUT__0", "RESULT"), INT64),),
        7,
    )
    assert aoti_signature(TWO, SINGLE, None, program) == Signature(
        (TensorSpec(("ARGS[0]", "x", "INPUT__0"), FP32),),
        (TensorSpec(("RESULT", "OUTPUT__0"), INT64),),
        7,
    )
