from __future__ import annotations

import bdb
from pathlib import Path
from types import ModuleType

import pytest

from tritonpy_backend_python.debug.report import Reporter
from tritonpy_worker.completion import complete
from tritonpy_worker.failure import Refused


def never() -> None:
    pytest.fail("nobody wanted to leave")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), bdb.BdbQuit()])
def test_who_wants_to_leave_leaves_and_nothing_is_told(
    error: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    left: list[int] = []
    Reporter(True, lambda: left.append(1)).tell(error)
    assert left == [1]
    assert capsys.readouterr() == ("", "")


def test_what_the_runtime_refuses_has_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter(True, never)
    reporter.tell(Refused("that is no response"))
    assert capsys.readouterr().err == "error: that is no response\n"
    assert reporter.has_told


def test_a_traceback_begins_with_the_models_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.py"
    file.write_text(
        "class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(config):\n        raise ValueError('no')\n"
    )
    module = ModuleType("model")
    exec(compile(file.read_text(), str(file), "exec"), vars(module))  # noqa: S102
    reporter = Reporter(False, never)
    try:
        complete(module, "m", "{}")
    except ValueError as error:
        trace = error.__traceback__
        assert trace is not None
        error.__traceback__ = trace.tb_next  # without the frame of this test
        reporter.tell(error)
    said = capsys.readouterr().err
    assert said.startswith(f'Traceback (most recent call last):\n  File "{file}", line 4, in auto_complete_config\n')
    assert said.endswith("ValueError: no\n")


def test_an_error_that_was_never_raised_is_told_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    Reporter(True, never).tell(ValueError("no"))
    assert capsys.readouterr().err == "ValueError: no\n"
