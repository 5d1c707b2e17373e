from __future__ import annotations

import pytest
import torch

from tritonpy_backend_torch.serving.results import listed

ONE = torch.ones(1)


@pytest.mark.parametrize(
    ("result", "found"),
    [
        (ONE, [ONE]),
        (["a", "b"], [["a", "b"]]),
        ([], [[]]),
        ((ONE, ["a"]), (ONE, ["a"])),
        ([ONE, ONE], [ONE, ONE]),
        ({"y": ONE}, {"y": ONE}),
    ],
)
def test_what_a_model_may_return(result, found):
    assert listed(result) == found


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (3, r"output must be of type Tensor, List\[str\] or Tuple containing one of these two types\. It should not be a List / Dictionary of Tensors or a Scalar"),
        ((ONE, [1]), r"output at index 1 must be of type Tensor or List\[str\], received List\[int\]"),
        ((ONE, 2.5), r"output at index 1 must be of type Tensor or List\[str\], received float"),
        ({"y": None}, r"output 'y' must be of type Tensor or List\[str\], received NoneType"),
    ],
)  # fmt: skip
def test_anything_else_is_refused(result, text):
    with pytest.raises(ValueError, match=text):
        listed(result)
