from __future__ import annotations

import pytest

from tritonpy import NotFound, Operation, OperationCall, PluginError
from tritonpy.engine.operations import OF_THE_PROTOCOL, Operations

LIST = Operation("list", "GET", "toys", "List them.")
PUT = Operation("put", "PUT", "toys", "Put one.")


def test_what_is_offered_is_listed_and_answers() -> None:
    operations = Operations()
    operations.offer({LIST: lambda call: [call.body], PUT: lambda call: call.revision})
    assert operations.listed() == [LIST, PUT]
    assert operations.call("list", OperationCall(body=1)) == [1]
    assert operations.call("put", OperationCall(revision=2)) == 2
    with pytest.raises(NotFound, match="there is no operation 'nothing'"):
        operations.call("nothing", OperationCall())


@pytest.mark.parametrize(
    "second", [Operation("list", "GET", "other", "Other."), Operation("other", "GET", "toys", "Other.")]
)
def test_a_name_or_a_path_is_offered_once(second: Operation) -> None:
    operations = Operations()
    operations.offer({LIST: lambda _call: None})
    with pytest.raises(PluginError, match="two operations have one name or path"):
        operations.offer({second: lambda _call: None})


@pytest.mark.parametrize("word", sorted(OF_THE_PROTOCOL))
def test_paths_of_the_protocol_are_not_to_be_had(word: str) -> None:
    with pytest.raises(PluginError, match="has a path of the protocol"):
        Operations().offer({Operation("mine", "GET", f"{word}/mine", "Mine."): lambda _call: None})
