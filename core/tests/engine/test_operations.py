from __future__ import annotations

import pytest

from tritonpy import NotFound
from tritonpy.engine.operations import RESERVED_PATHS, Operations
from tritonpy.frontend import Operation, OperationCall
from tritonpy.plugins import PluginError

LIST = Operation("list", "GET", "toys", "List them.")
PUT = Operation("put", "PUT", "toys", "Put one.")


def test_offered_operations_are_listed_and_called() -> None:
    operations = Operations()
    operations.offer({LIST: lambda call: [call.body], PUT: lambda call: call.revision})
    assert operations.listed() == [LIST, PUT]
    assert operations.call("list", OperationCall(body=1)) == [1]
    assert operations.call("put", OperationCall(revision=2)) == 2
    with pytest.raises(NotFound, match="unknown operation 'nothing'"):
        operations.call("nothing", OperationCall())


@pytest.mark.parametrize(
    "second",
    [Operation("list", "GET", "other", "Other."), Operation("other", "GET", "toys", "Other.")],
)
def test_a_name_or_a_path_is_offered_once(second: Operation) -> None:
    operations = Operations()
    operations.offer({LIST: lambda _call: None})
    with pytest.raises(PluginError, match="two operations have the same name or path"):
        operations.offer({second: lambda _call: None})


@pytest.mark.parametrize("word", sorted(RESERVED_PATHS))
def test_reserved_paths_are_refused(word: str) -> None:
    with pytest.raises(PluginError, match="has a reserved path"):
        Operations().offer({Operation("mine", "GET", f"{word}/mine", "Mine."): lambda _call: None})
