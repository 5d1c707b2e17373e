from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_backend_torch.values import as_bool, as_int


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("ON", True), ("1", True), ("False", False), ("off", False), ("0", False)]
)
def test_switches(text, value):
    assert as_bool(text) is value


@pytest.mark.parametrize("text", ["", "yes", "2"])
def test_what_is_no_switch(text):
    with pytest.raises(InvalidArgument, match=f"failed to convert '{text}' to boolean"):
        as_bool(text)


def test_numbers():
    assert as_int(" -3") == -3
    with pytest.raises(InvalidArgument, match=r"failed to convert '1.5' to integral number"):
        as_int("1.5")
