from __future__ import annotations

from dataclasses import replace

from tritonpy import StartupError
from tritonpy_config.problem import ConfigProblem
from tritonpy_config.server import InvalidServerConfig


def test_the_text_names_the_source_and_each_problem_on_a_line():
    error = InvalidServerConfig(
        [ConfigProblem("a.b", "is odd", 3, 4), ConfigProblem("", "is empty")], "server.yaml"
    )
    assert str(error) == "server.yaml has 2 problems:\n  line 3, column 4: a.b: is odd\n  is empty"
    assert isinstance(error, StartupError)


def test_errors_are_joined_in_order():
    one, two = (InvalidServerConfig([ConfigProblem(name, "is odd")]) for name in "ab")
    assert [problem.path for problem in InvalidServerConfig.joined([one, two]).problems] == [
        "a",
        "b",
    ]


def test_problems_are_located_later():
    error = InvalidServerConfig([ConfigProblem("a", "is odd")])
    assert str(error.located(lambda problem: replace(problem, line=7, column=1), "x.yaml")) == (
        "x.yaml has 1 problem:\n  line 7, column 1: a: is odd"
    )
