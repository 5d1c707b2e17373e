"""The server's side of the template process."""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from tritonpy import Internal
from tritonpy.repository import LoadCancellation
from tritonpy_backend_python.environments import Environment
from tritonpy_backend_python.template import Template, TemplateLostError

from .serving import DOUBLE, descriptors, wait_for, write_model

ENVIRONMENT = Environment(sys.executable, "the tests' own")


@pytest.fixture
def template(tmp_path: Path) -> Iterator[Any]:
    made: list[Template] = []

    def make(methods: str = DOUBLE, before: str = "") -> Template:
        folder = write_model(tmp_path, "m", methods)
        file = folder / "1" / "model.py"
        file.write_text(before + "\n" + file.read_text())
        model: Any = SimpleNamespace(
            name="m",
            version=1,
            config=SimpleNamespace(default_model_filename=""),
            path=folder / "1",
            directory=folder,
            backend_directory=None,
            log=logging.LoggerAdapter(logging.getLogger("test.template")),
            cancellation=LoadCancellation(),
        )
        made.append(Template(model, ENVIRONMENT))
        return made[-1]

    before = descriptors()
    yield make
    for each in made:
        each.close()
        wait_for(lambda each=each: not psutil.pid_exists(each._process.pid))
    wait_for(lambda: descriptors() <= before)


def pair() -> tuple[socket.socket, socket.socket, int]:
    ours, theirs = socket.socketpair()
    return ours, theirs, os.open(os.devnull, os.O_WRONLY)


def test_a_template_completes_a_configuration_repeatedly(template: Any) -> None:
    methods = """
    @staticmethod
    def auto_complete_config(config):
        config.set_max_batch_size(config.as_dict()["max_batch_size"] + 1)
        return config
    """
    made = template(methods)
    for size in (3, 5):
        config = json.dumps({"name": "m", "max_batch_size": size, "input": [], "output": []})
        assert json.loads(made.auto_complete(config))["max_batch_size"] == size + 1


def test_exceptions_of_the_completion_have_their_location(template: Any) -> None:
    made = template("@staticmethod\ndef auto_complete_config(config):\n    return 1 / 0")
    with pytest.raises(Internal, match=r"ZeroDivisionError: division by zero\n\nAt:\n  .*model.py"):
        made.auto_complete("{}")


def test_forked_workers_end_with_their_socket(template: Any) -> None:
    made = template()
    assert made.fork_obstacle == ""
    ours, theirs, output = pair()
    worker = made.fork(theirs, output)
    theirs.close()
    os.close(output)
    assert worker.pid != made._process.pid
    assert worker.wait(0.01) is None
    ours.close()
    assert worker.wait(60) is not None


def test_the_status_of_a_killed_fork_is_known(template: Any) -> None:
    made = template()
    ours, theirs, output = pair()
    worker = made.fork(theirs, output)
    worker.kill()
    assert worker.wait(60) == -9
    for each in (ours, theirs):
        each.close()
    os.close(output)


def test_a_template_becomes_a_worker(template: Any) -> None:
    made = template()
    ours, theirs, output = pair()
    worker = made.become(theirs, output)
    theirs.close()
    os.close(output)
    assert worker.pid == made._process.pid
    assert worker.wait(0.01) is None
    ours.close()
    assert worker.wait(60) is not None


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (
            "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
            "started 1 threads",
        )
    ],
)
def test_code_that_starts_threads_must_not_be_forked(template: Any, before: str, why: str) -> None:
    assert why in template(before=before).fork_obstacle


def test_a_killed_template_is_an_error_each_time(template: Any) -> None:
    made = template()
    made._process.kill()
    for _ in range(2):
        ours, theirs, output = pair()
        with pytest.raises(TemplateLostError):
            made.fork(theirs, output)
        ours.close()
        theirs.close()
        os.close(output)


def test_an_import_that_never_ends_ends_with_the_server(tmp_path: Path) -> None:
    folder = write_model(tmp_path, "m")
    (folder / "1" / "model.py").write_text(
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(__import__('os').getpid()))\nwhile True: pass\n"
    )
    code = f"""
import logging, sys, types
from pathlib import Path
from tritonpy.repository import LoadCancellation
from tritonpy_backend_python.environments import Environment
from tritonpy_backend_python.template import Template
model = types.SimpleNamespace(name="m", version=1, config=types.SimpleNamespace(default_model_filename=""),
    path=Path({str(folder / "1")!r}), directory=Path({str(folder)!r}), backend_directory=None, log=logging.LoggerAdapter(logging.getLogger("x")),
    cancellation=LoadCancellation())
Template(model, Environment(sys.executable, "own"))
"""
    server = psutil.Popen([sys.executable, "-c", code])
    pid = tmp_path / "pid"
    wait_for(lambda: pid.exists() and pid.read_text())
    server.kill()
    server.wait()
    wait_for(lambda: not psutil.pid_exists(int(pid.read_text())))
