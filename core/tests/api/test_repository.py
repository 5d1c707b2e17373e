from __future__ import annotations

import pytest

from tritonpy.api.repository import named_versions
from tritonpy_types.errors import InvalidArgument


@pytest.mark.parametrize(
    ("text", "versions"),
    [("3", [3]), ("1,3", [1, 3]), (" 3 , 1,3", [1, 3]), (str(2**63 - 1), [2**63 - 1])],
)
def test_versions_are_numbers_separated_by_commas(text, versions):
    assert named_versions(text) == versions


@pytest.mark.parametrize(
    "text", ["", ",", "1,", "0", "-1", "1.5", "x", "\u0663", "1;2", str(2**63), "9" * 5000]
)
def test_other_texts_are_refused(text):
    with pytest.raises(InvalidArgument, match="parameter 'versions' must be version numbers"):
        named_versions(text)
