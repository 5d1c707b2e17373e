from __future__ import annotations

from tritonpy_backend_trt.signature import Packing, Profile, Range, Signature
from tritonpy_backend_trt.sizes import byte_size, input_sizes

from .descriptions import info


def test_a_tensor_takes_what_its_elements_take():
    assert byte_size(info("A", -1, 3), (2, 3)) == 24
    assert byte_size(info("A"), ()) == 4
    assert byte_size(info("A", -1), (0,)) == 0


def test_a_packed_tensor_takes_whole_vectors():
    packed = info("A", -1, 3, 2, datatype="FP16", packing=Packing(1, 4))
    assert byte_size(packed, (2, 3, 2)) == 2 * 4 * 2 * 2
    assert byte_size(packed, (2, 4, 2)) == 2 * 4 * 2 * 2
    assert byte_size(packed, (2, 5, 2)) == 2 * 8 * 2 * 2


def test_input_sizes_fit_the_largest_shape_of_any_profile():
    def profile(index, a):
        return Profile(
            index,
            {"A": Range(a, a, a), "SIZE": Range((2,), (2,), (2,))},
            {"SIZE": Range((1, 1), (1, 1), (1, 1))},
        )

    signature = Signature(
        {
            "A": info("A", -1, -1),
            "SIZE": info("SIZE", 2, is_shape=True),
            "OUT": info("OUT", -1, output=True),
        },
        (),
    )
    assert input_sizes(signature, [profile(0, (8, 2)), profile(1, (4, 5))]) == {"A": 80}
