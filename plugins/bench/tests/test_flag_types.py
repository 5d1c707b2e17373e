from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from tritonpy_bench.flag_types import header, id_range, parameter, shape, truth


def test_values_are_parsed():
    assert header("X-Key: a:b ") == ("X-Key", "a:b")
    assert shape("in:1:2,3") == ("in:1", (2, 3))
    assert id_range("7") == (7, None)
    assert id_range("7:9") == (7, 9)
    assert truth("TRUE")
    assert not truth("off")
    assert [parameter(text) for text in ("a:1:int", "b:x:y:string", "c:true:bool", "d:.5:float")] == [
        ("a", 1), ("b", "x:y"), ("c", True), ("d", 0.5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (header, "nothing"),
        (header, ": value"),
        (header, "A: b\r\nC: d"),
        (shape, "in"),
        (shape, "in:"),
        (shape, "in:1,x"),
        (shape, "in:1,-2"),
        (shape, ":1"),
        (id_range, "a"),
        (id_range, "1:"),
        (truth, "perhaps"),
        (parameter, "a:1"),
        (parameter, "a:b:int"),
        (parameter, "a:b:tensor"),
        (parameter, ":b:string"),
    ],
)
def test_an_invalid_value_is_named(read, text):
    with pytest.raises(ArgumentTypeError) as caught:
        read(text)
    assert repr(text)[1:-1] in str(caught.value).encode("unicode_escape").decode()
