from __future__ import annotations

import os
import sys

import pytest

from tritonpy import StartupError
from tritonpy_frontend_envoy.launching import environment as module
from tritonpy_frontend_envoy.launching.environment import envoy_environment, interpreter_state


def test_envoy_finds_the_interpreter_and_everything_it_imports(monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "libmine.so")
    given = envoy_environment(7)
    library, mine = given["LD_PRELOAD"].split(os.pathsep)
    assert os.path.basename(library).startswith("libpython3")
    assert mine == "libmine.so"
    assert given["PYTHONPATH"].split(os.pathsep) == sys.path
    assert given["TRITONPY_ENVOY_CONTROL"] == "7"


def test_what_was_changed_is_known_as_it_was(monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "libmine.so")
    monkeypatch.setenv("UNTOUCHED", "yes")
    monkeypatch.delenv("PYTHONHOME", raising=False)
    state = interpreter_state(envoy_environment(7))
    assert state.environment["LD_PRELOAD"] == "libmine.so"
    assert state.environment["PYTHONHOME"] is None
    assert "UNTOUCHED" not in state.environment
    assert (state.executable, state.path) == (sys.executable, sys.path)


def test_an_interpreter_that_is_no_library_is_an_error_that_says_so(monkeypatch):
    monkeypatch.setattr(module.find_libpython, "candidate_paths", lambda: iter(["/nowhere/libpython3.so"]))
    with pytest.raises(StartupError, match="--enable-shared"):
        envoy_environment(7)
