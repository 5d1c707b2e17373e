from __future__ import annotations

import os
import sys

from tritonpy_frontend_envoy.embedded.interpreter import take_back
from tritonpy_frontend_envoy.handover import InterpreterState


def test_the_interpreter_and_what_it_starts_are_those_of_who_started_envoy(monkeypatch):
    names = ("executable", "_base_executable", "prefix", "exec_prefix", "base_prefix", "base_exec_prefix")
    for name in names:
        monkeypatch.setattr(sys, name, "envoy's")
    monkeypatch.setattr(sys, "path", [".", "/envoy"])
    monkeypatch.setattr(sys, "argv", [""])
    monkeypatch.setenv("PYTHONHOME", "/envoy")
    monkeypatch.setenv("LD_PRELOAD", "libpython.so:libmine.so")
    state = InterpreterState(
        {"PYTHONHOME": None, "LD_PRELOAD": "libmine.so"}, "/python", "/base/python", "/venv", "/venv", "/base", "/base", ["/lib"], ["tritonpy", "serve"]
    )  # fmt: skip
    take_back(state)
    assert "PYTHONHOME" not in os.environ
    assert os.environ["LD_PRELOAD"] == "libmine.so"
    assert [getattr(sys, name) for name in names] == ["/python", "/base/python", "/venv", "/venv", "/base", "/base"]
    assert (sys.path, sys.argv) == (["/lib"], ["tritonpy", "serve"])
