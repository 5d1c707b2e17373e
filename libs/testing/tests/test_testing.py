from __future__ import annotations

import functools
import subprocess
import sys
import textwrap
import types

import pytest

import tritonpy_testing
from tritonpy import Backend, hookimpl
from tritonpy_testing import running_server


@pytest.mark.parametrize("name", tritonpy_testing.__all__)
def test_every_public_name_exists_and_is_documented(name):
    assert getattr(tritonpy_testing, name).__doc__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = tritonpy_testing.nothing


class Doubler(Backend):
    def infer(self, inputs):
        return {"OUT": inputs["IN"] * 2}


@hookimpl
def tritonpy_backends():
    return {"doubler": Doubler}


def test_the_example_of_the_docstring_works(model_repository, monkeypatch, failures):
    plugin = types.ModuleType("my_plugin")
    plugin.Doubler, plugin.tritonpy_backends = Doubler, tritonpy_backends
    monkeypatch.setitem(sys.modules, "my_plugin", plugin)
    not_installed = functools.partial(running_server, plugins=[plugin], installed=False)
    monkeypatch.setattr("tritonpy_testing.in_process_server.running_server", not_installed)
    indented = [
        line
        for line in tritonpy_testing.__doc__.splitlines()
        if line.startswith("    ") or not line
    ]
    names = {}
    exec(textwrap.dedent("\n".join(indented)), names)  # noqa: S102
    names["test_it_doubles"](model_repository)
    assert failures(names["TestDoubler"]) == set()


def test_importing_it_loads_neither_pytest_nor_a_server():
    code = (
        "import sys, tritonpy_testing\n"
        "from tritonpy_testing import BackendContract, FrontendContract, SchedulerContract, InProcessClient, running_server\n"
        "print([name for name in ('pytest', 'grpc', 'uvicorn', 'litestar', 'tritonclient') if name in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )
