from __future__ import annotations

from tritonpy_backend_torch.signature import Place, Signature, TensorInfo

ONE = TensorInfo("FP32", (1,))


def test_the_first_place_of_a_name_is_meant():
    signature = Signature((Place(("a", "INPUT__0")), Place(("INPUT__0", "b"))))
    assert signature.input_numbers() == {"a": 0, "INPUT__0": 0, "b": 1}


def test_what_has_no_name_is_not_given_and_needs_no_type():
    signature = Signature((Place(("a",), ONE), Place((), default=3)), (Place(("b",), ONE),))
    assert [place.names for place in signature.given] == [("a",)]
    assert signature.is_complete


def test_a_tensor_without_a_type_leaves_it_incomplete():
    assert not Signature((Place(("a",), ONE),), (Place(("b",)),)).is_complete
    assert not Signature((), (Place(("b",), ONE),)).is_complete
    assert not Signature((Place(("a",), ONE),)).is_complete
