from __future__ import annotations

from tritonpy_backend_torch.signature import Signature, TensorInfo, TensorSpec

ONE = TensorInfo("FP32", (1,))


def test_a_duplicate_name_means_the_first_tensor():
    signature = Signature((TensorSpec(("a", "INPUT__0")), TensorSpec(("INPUT__0", "b"))))
    assert signature.input_numbers() == {"a": 0, "INPUT__0": 0, "b": 1}


def test_an_unnamed_input_is_not_a_client_input():
    signature = Signature(
        (TensorSpec(("a",), ONE), TensorSpec((), default=3)), (TensorSpec(("b",), ONE),)
    )
    assert [spec.names for spec in signature.client_inputs] == [("a",)]
    assert signature.is_complete


def test_a_tensor_without_a_type_makes_the_signature_incomplete():
    assert not Signature((TensorSpec(("a",), ONE),), (TensorSpec(("b",)),)).is_complete
    assert not Signature((), (TensorSpec(("b",), ONE),)).is_complete
    assert not Signature((TensorSpec(("a",), ONE),)).is_complete
