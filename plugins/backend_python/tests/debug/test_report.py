from __future__ import annotations

import bdb
from pathlib import Path
from types import ModuleType

import pytest

from tritonpy_backend_python.debug.report import Reporter
from tritonpy_worker.completion import complete
from tritonpy_worker.failure import ModelContractError


def unexpected() -> None:
    pytest.fail("leave() was called")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), bdb.BdbQuit()])
def test_quitting_reports_nothing(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[int] = []
    Reporter(True, lambda: calls.append(1)).report(error)
    assert calls == [1]
    assert capsys.readouterr() == ("", "")


def test_contract_errors_have_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter(True, unexpected)
    reporter.report(ModelContractError("not a response"))
    assert capsys.readouterr().err == "error: not a response\n"
    assert reporter.has_reported


def test_a_traceback_begins_with_the_models_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.py"
    file.write_text(
        "class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(config):\n        raise ValueError('no')\n"
    )
    module = ModuleType("model")
    exec(compile(file.read_text(), str(file), "exec"), vars(module))  # noqa: S102
    reporter = Reporter(False, unexpected)
    try:
        complete(module, "m", "{}")
    except ValueError as error:
        trace = error.__traceback__
        assert trace is not None
        error.__traceback__ = trace.tb_next  # omits the frame of this test
        reporter.report(error)
    printed = capsys.readouterr().err
    assert printed.startswith(
        f'Traceback (most recent call last):\n  File "{file}", line 4, in auto_complete_config\n'
    )
    assert printed.endswith("ValueError: no\n")


def test_an_exception_without_traceback_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    Reporter(True, unexpected).report(ValueError("no"))
    assert capsys.readouterr().err == "ValueError: no\n"
