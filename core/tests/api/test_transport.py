from __future__ import annotations

import msgspec

from tritonpy import Failure, StartupError
from tritonpy.config.problem import ConfigProblem
from tritonpy.config.server import InvalidServerConfig


def again(error):
    """Return an error as another process gets it."""
    return msgspec.json.decode(msgspec.json.encode(Failure.of(error)), type=Failure).error()


def test_a_start_up_error_is_the_same_in_another_process():
    error = again(StartupError("port 1 is taken"))
    assert (type(error), str(error)) == (StartupError, "port 1 is taken")


def test_what_is_wrong_in_a_configuration_can_be_located_there():
    error = again(InvalidServerConfig([ConfigProblem("frontends.http.port", "too high")]))
    assert isinstance(error, InvalidServerConfig)
    located = error.located(lambda problem: ConfigProblem(problem.path, problem.text, 3, 4), "server.yaml")
    assert str(located) == "server.yaml has 1 problem:\n  line 3, column 4: frontends.http.port: too high"
