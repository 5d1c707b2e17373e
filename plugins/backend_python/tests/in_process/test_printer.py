from __future__ import annotations

import io
import threading
from typing import Any

import pytest

from tritonpy_backend_python.in_process.printer import Printer


class Log:
    """A host for a printer."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def log(self, level: str, message: str) -> None:
        assert level == "INFO"
        self.lines.append(message)


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.mark.parametrize(
    ("calls", "lines"),
    [
        ([(("a", 1), {})], ["a 1"]),
        ([(("a", "b"), {"sep": ""})], ["ab"]),
        ([((), {})], [""]),
        ([(("a",), {"end": ""}), (("b",), {})], ["ab"]),
        ([(("a\nb\nc",), {"end": ""}), (("d",), {})], ["a\nb", "cd"]),
        ([(("a",), {"sep": None, "end": None})], ["a"]),
    ],
)
def test_complete_lines_are_logged(log: Log, calls: list[Any], lines: list[str]) -> None:
    printer = Printer(log)
    for values, options in calls:
        printer.print(*values, **options)
    assert log.lines == lines


def test_an_incomplete_line_is_logged_once(log: Log) -> None:
    printer = Printer(log)
    printer.print("half", end="")
    assert log.lines == []
    printer.end_line()
    printer.end_line()
    assert log.lines == ["half"]


def test_lines_of_different_threads_are_separate(log: Log) -> None:
    printer = Printer(log)
    printer.print("one", end=" ")
    thread = threading.Thread(target=lambda: printer.print("other"))
    thread.start()
    thread.join()
    printer.print("whole")
    assert log.lines == ["other", "one whole"]


def test_output_for_a_file_goes_to_the_file(log: Log) -> None:
    file = io.StringIO()
    Printer(log).print("a", "b", sep="-", end="!", file=file, flush=True)
    assert (file.getvalue(), log.lines) == ("a-b!", [])


def test_invalid_arguments_raise_the_builtins_error(log: Log) -> None:
    with pytest.raises(TypeError, match="sep must be None or a string, not int"):
        Printer(log).print("a", sep=1)
