from __future__ import annotations

import json

import pytest

from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.api.parameters import as_received_text, as_text, check_parameters

GIVEN = {"z": 1, "a": 'x é"/\n\x01', "b": True, "n": -5, "big": 9007199254740993}


def test_parameters_are_copied():
    given = dict(GIVEN)
    kept = check_parameters(given)
    given["z"] = 2
    assert kept == GIVEN
    assert check_parameters(None) == {}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([1], "Expect N8pybind114dictE, got <class 'list'>"),
        ("{}", "Expect N8pybind114dictE, got <class 'str'>"),
        ({5: 1}, "Expect parameters keys to have type str, found type <class 'int'>"),
        (
            {"a": None},
            "Expect parameters values to have type bool/int/str, found type <class 'NoneType'>",
        ),
        (
            {"a": 1.5},
            "Expect parameters values to have type bool/int/str, found type <class 'float'>",
        ),
        (
            {"a": [1]},
            "Expect parameters values to have type bool/int/str, found type <class 'list'>",
        ),
        (
            {"a": b"x"},
            "Expect parameters values to have type bool/int/str, found type <class 'bytes'>",
        ),
    ],
)
def test_invalid_parameters_have_tritons_error(given, text):
    with pytest.raises(TritonModelException) as caught:
        check_parameters(given)
    assert str(caught.value) == text


def test_a_models_own_parameters_have_pythons_json_format():
    assert as_text({"a": "é", "c": 3}) == '{"a": "\\u00e9", "c": 3}'


def test_received_parameters_have_the_servers_json_format():
    assert as_received_text({**GIVEN, "f": 1.5}) == (
        '{"z":1,"a":"x é\\"/\\n\\u0001","b":true,"n":-5,"big":9007199254740993,"f":1.5}'
    )
    assert as_received_text({}) == "{}"
    assert json.loads(as_received_text(GIVEN)) == GIVEN
