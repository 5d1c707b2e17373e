from __future__ import annotations

import io
import threading
from typing import Any

import pytest

from tritonpy_backend_python.in_process.printing import Printer


class Log:
    """What a printer needs of a host."""

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
def test_whole_lines_are_logged(log: Log, calls: list[Any], lines: list[str]) -> None:
    printer = Printer(log)
    for values, options in calls:
        printer.print(*values, **options)
    assert log.lines == lines


def test_a_line_without_an_end_is_let_go_once(log: Log) -> None:
    printer = Printer(log)
    printer.print("half", end="")
    assert log.lines == []
    printer.end_line()
    printer.end_line()
    assert log.lines == ["half"]


def test_lines_of_two_threads_do_not_mix(log: Log) -> None:
    printer = Printer(log)
    printer.print("one", end=" ")
    thread = threading.Thread(target=lambda: printer.print("other"))
    thread.start()
    thread.join()
    printer.print("whole")
    assert log.lines == ["other", "one whole"]


def test_a_given_file_gets_what_is_meant_for_it(log: Log) -> None:
    file = io.StringIO()
    Printer(log).print("a", "b", sep="-", end="!", file=file, flush=True)
    assert (file.getvalue(), log.lines) == ("a-b!", [])


def test_wrong_arguments_are_told_as_by_the_builtin(log: Log) -> None:
    with pytest.raises(TypeError, match="sep must be None or a string, not int"):
        Printer(log).print("a", sep=1)
