from __future__ import annotations

import threading

import numpy as np
import pytest

from tritonpy import Backend, StartupError, hookimpl
from tritonpy.frontend import Frontend
from tritonpy_testing import InferInput, InProcessClient, running_server

CONFIG = """
    backend: "doubler" max_batch_size: 8
    input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
"""


class Doubler(Backend):
    def infer(self, inputs):
        return {"OUT": inputs["IN"] * 2}


class Silent(Frontend):
    state = "new"

    async def start(self, engine):
        self.state = "started"

    async def drain(self):
        self.state = "drained"

    async def stop(self):
        self.state += ", stopped"

    def address(self):
        return "127.0.0.1:1"


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_backends():
        return {"doubler": Doubler}

    @staticmethod
    @hookimpl
    def tritonpy_frontends():
        return {"silent": Silent}


def running(model_repository):
    config = {"repositories": [{"url": str(model_repository.path)}], "frontends": {"silent": True}}
    return running_server(config, [Plugin], installed=False)


def test_a_server_runs_inside_the_block_and_is_stopped_after_it(model_repository):
    model_repository.add("twice", config=CONFIG)
    threads = set(threading.enumerate())
    with running(model_repository) as server:
        assert server.address("silent") == "127.0.0.1:1"
        client = InProcessClient(server)
        assert client.is_server_ready()
        inputs = [InferInput("IN", [1, 4], "FP32").set_data_from_numpy(np.ones((1, 4), np.float32))]
        assert (client.infer("twice", inputs).as_numpy("OUT") == 2).all()
    assert set(threading.enumerate()) <= threads
    assert server.server.frontends["silent"].state == "drained, stopped"


def test_a_failed_start_raises_and_leaves_no_threads(model_repository):
    model_repository.add("wrong", config='backend: "unknown"')
    threads = set(threading.enumerate())
    with pytest.raises(StartupError, match="wrong"), running(model_repository):
        pass
    assert set(threading.enumerate()) <= threads


def test_an_exception_in_the_block_stops_the_server(model_repository):
    threads = set(threading.enumerate())
    with pytest.raises(ZeroDivisionError), running(model_repository):
        raise ZeroDivisionError
    assert set(threading.enumerate()) <= threads


def test_a_frontend_that_does_not_run_has_no_address(model_repository):
    with running(model_repository) as server, pytest.raises(KeyError):
        _ = server.http
