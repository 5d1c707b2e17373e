from __future__ import annotations

from tritonpy_worker.api.enumeration import Enumeration


class Color(Enumeration):
    RED = 0
    GREEN = 1


def test_a_member_equals_its_number_and_prints_with_its_class():
    assert Color.GREEN == 1
    assert int(Color.GREEN) == 1
    assert [10, 11][Color.GREEN] == 11
    assert str(Color.RED) == "Color.RED"
    assert f"{Color.RED!r}" == "<Color.RED: 0>"
    assert {Color.RED: "stop"}[0] == "stop"
