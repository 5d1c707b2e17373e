from __future__ import annotations

import json

import pytest

from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.api.parameters import as_received_text, as_text, checked

GIVEN = {"z": 1, "a": 'x é"/\n\x01', "b": True, "n": -5, "big": 9007199254740993}


def test_what_a_model_gives_is_copied():
    given = dict(GIVEN)
    kept = checked(given)
    given["z"] = 2
    assert kept == GIVEN
    assert checked(None) == {}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([1], "Expect N8pybind114dictE, got <class 'list'>"),
        ("{}", "Expect N8pybind114dictE, got <class 'str'>"),
        ({5: 1}, "Expect parameters keys to have type str, found type <class 'int'>"),
        ({"a": None}, "Expect parameters values to have type bool/int/str, found type <class 'NoneType'>"),
        ({"a": 1.5}, "Expect parameters values to have type bool/int/str, found type <class 'float'>"),
        ({"a": [1]}, "Expect parameters values to have type bool/int/str, found type <class 'list'>"),
        ({"a": b"x"}, "Expect parameters values to have type bool/int/str, found type <class 'bytes'>"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_tritons_words(given, text):
    with pytest.raises(TritonModelException) as caught:
        checked(given)
    assert str(caught.value) == text


def test_a_models_own_parameters_are_shown_as_python_writes_them():
    assert as_text({"a": "é", "c": 3}) == '{"a": "\\u00e9", "c": 3}'


def test_received_parameters_are_shown_as_the_server_writes_them():
    assert as_received_text({**GIVEN, "f": 1.5}) == (
        '{"z":1,"a":"x é\\"/\\n\\u0001","b":true,"n":-5,"big":9007199254740993,"f":1.5}'
    )
    assert as_received_text({}) == "{}"
    assert json.loads(as_received_text(GIVEN)) == GIVEN
