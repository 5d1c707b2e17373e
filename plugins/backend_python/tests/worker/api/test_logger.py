from __future__ import annotations

import pytest

from tritonpy_worker.api.logger import Logger


@pytest.mark.parametrize(
    ("write", "level"),
    [
        (Logger.log_info, "INFO"),
        (Logger.log_warn, "WARNING"),
        (Logger.log_error, "ERROR"),
        (Logger.log_verbose, "VERBOSE"),
    ],
)
def test_messages_reach_the_server_with_their_level(host, write, level):
    write("ü\n%s")
    write(message="named")
    Logger.log("any", getattr(Logger, level))
    Logger.log(message="any", level=getattr(Logger, level))
    assert host.logged == [(level, "ü\n%s"), (level, "named"), (level, "any"), (level, "any")]


def test_messages_have_the_level_info_by_default(host):
    Logger.log("x")
    Logger().log_info(b"bytes")
    assert host.logged == [("INFO", "x"), ("INFO", "bytes")]


@pytest.mark.parametrize(
    ("number", "name"), [(0, "INFO"), (1, "WARNING"), (2, "ERROR"), (3, "VERBOSE")]
)
def test_levels_have_tritons_numbers_and_names(number, name):
    level = getattr(Logger, name)
    assert level == number
    assert repr(level) == f"<LogLevel.{name}: {number}>"


def test_wrong_argument_types_have_tritons_error(host):
    for bad in (5, None, ["x"]):
        with pytest.raises(TypeError) as caught:
            Logger.log_warn(bad)
        assert str(caught.value) == (
            "log_warn(): incompatible function arguments. The following argument types are supported:\n"
            f"    1. (message: str) -> None\n\nInvoked with: {bad!r}"
        )
    for arguments in ((5,), ("x", 1), ("x", "INFO"), ("x", None)):
        with pytest.raises(TypeError) as caught:
            Logger.log(*arguments)
        assert str(caught.value).startswith(
            "log(): incompatible function arguments. The following argument types are supported:\n"
            "    1. (message: str, level: c_python_backend_utils.Logger.LogLevel = <LogLevel.INFO: 0>) -> None"
        )
    assert host.logged == []
