from __future__ import annotations

import msgspec
import pytest

from tritonpy.frontend import Operation, OperationCall


@pytest.mark.parametrize(
    ("path", "parameters"),
    [("toys", []), ("toys/{box}", ["box"]), ("a-b/{one}/c_d/{two}", ["one", "two"])],
)
def test_a_path_consists_of_words_and_parameters(path: str, parameters: list[str]) -> None:
    assert Operation("name", "GET", path, "List.").parameters == parameters


@pytest.mark.parametrize(
    "path",
    ["", "/toys", "toys/", "toys//a", "Toys", "toys/{Box}", "toys/{box", "{box}", "a b", "a/../b"],
)
def test_an_invalid_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is no path of an operation"):
        Operation("name", "GET", path, "List.")


def test_operations_and_calls_are_plain_data() -> None:
    operation, call = (
        Operation("name", "PUT", "toys/{box}", "List."),
        OperationCall({"box": "a"}, [None, 1.5], 3),
    )
    assert msgspec.json.decode(msgspec.json.encode(operation), type=Operation) == operation
    assert msgspec.json.decode(msgspec.json.encode(call), type=OperationCall) == call
