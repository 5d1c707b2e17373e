from __future__ import annotations

import pytest

from tritonpy_config.config_file import read_config, string_parameters, with_positions
from tritonpy_config.problem import ConfigProblem, Positions
from tritonpy_testing import model_config
from tritonpy_types.errors import InvalidArgument


def backend_of(path, name="", override=None):
    reading, source = read_config(path, name, override)
    return reading.checked(source).backend, source


def test_the_override_wins_over_the_named_file_and_that_over_the_common_one(model_repository):
    path = model_repository.add(
        "m", files={"config.pbtxt": 'backend: "common"', "configs/fast.pbtxt": 'backend: "named"'}
    )
    assert backend_of(path) == ("common", str(path / "config.pbtxt"))
    assert backend_of(path, "fast") == ("named", str(path / "configs/fast.pbtxt"))
    assert backend_of(path, "slow") == ("common", str(path / "config.pbtxt"))
    assert backend_of(path, "fast", '{"backend": "given"}') == (
        "given",
        "the 'config' parameter of the load request",
    )


def test_no_file_is_an_empty_configuration(model_repository):
    assert backend_of(model_repository.add("m"))[0] == ""


def test_a_file_that_cannot_be_read_is_named(model_repository, monkeypatch):
    path = model_repository.add("m", config="")

    def refuse(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    with pytest.raises(InvalidArgument, match=r"config.pbtxt cannot be read: Permission denied"):
        read_config(path, "", None)


def test_problems_get_the_position_of_their_key(model_repository):
    path = model_repository.add("m", config='backend: "x"\nmax_batch_size: 4\n')
    reading, _ = read_config(path, "", None)
    problem, other = with_positions(
        [ConfigProblem("max_batch_size", "bad"), ConfigProblem("name", "bad")], reading.positions
    )
    assert (problem.line, problem.column) == (2, 1)
    assert other.line is None
    assert with_positions([], Positions()) == []


def test_parameters_are_plain_text():
    assert string_parameters(
        model_config('parameters { key: "a" value { string_value: "1" } }')
    ) == {"a": "1"}
