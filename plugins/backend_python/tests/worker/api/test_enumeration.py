from __future__ import annotations

from tritonpy_worker.api.enumeration import Enumeration


class Colour(Enumeration):
    RED = 0
    GREEN = 1


def test_a_member_is_its_number_and_prints_with_its_kind():
    assert Colour.GREEN == 1
    assert int(Colour.GREEN) == 1
    assert [10, 11][Colour.GREEN] == 11
    assert str(Colour.RED) == "Colour.RED"
    assert f"{Colour.RED!r}" == "<Colour.RED: 0>"
    assert {Colour.RED: "stop"}[0] == "stop"
