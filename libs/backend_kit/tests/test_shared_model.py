from __future__ import annotations

from types import SimpleNamespace

from tritonpy import MemoryUsage
from tritonpy_backend_kit.shared_model import SharedModelBackend


class ToyFile:
    def __init__(self, model):
        self.model = model
        self.closed = False

    def memory_usage(self):
        yield MemoryUsage("CPU", 0, 8)

    def close(self):
        self.closed = True


class ToyBackend(SharedModelBackend):
    shared_class = ToyFile


def test_instances_share_one_opened_model():
    model = SimpleNamespace(shared=None)
    opened = ToyBackend.load(model)
    assert opened.model is model
    assert ToyBackend.load(SimpleNamespace(shared=opened)) is opened
    assert ToyBackend.shared_memory_usage(opened) == [MemoryUsage("CPU", 0, 8)]
    ToyBackend.unload(opened)
    assert opened.closed


def test_a_model_that_was_never_opened_has_nothing_to_close():
    assert ToyBackend.shared_memory_usage(None) == ()
    ToyBackend.unload(None)
