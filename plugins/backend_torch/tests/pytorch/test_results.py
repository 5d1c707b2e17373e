from __future__ import annotations

import pytest
import torch

from tritonpy_backend_torch.pytorch.results import parse_result

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
def test_supported_results(result, found):
    assert parse_result(result) == found


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (3, r"output must be of type Tensor, List\[str\] or Tuple containing one of these two types\. It should not be a List / Dictionary of Tensors or a Scalar"),
        ((ONE, [1]), r"output at index 1 must be of type Tensor or List\[str\], received List\[int\]"),
        ((ONE, 2.5), r"output at index 1 must be of type Tensor or List\[str\], received float"),
        ({"y": None}, r"output 'y' must be of type Tensor or List\[str\], received NoneType"),
    ],
)  # fmt: skip
def test_other_results_are_rejected(result, text):
    with pytest.raises(ValueError, match=text):
        parse_result(result)
