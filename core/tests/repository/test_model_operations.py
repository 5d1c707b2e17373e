from __future__ import annotations

import threading
from types import SimpleNamespace

from tritonpy.repository.model_operations import remove_if_idle


class Model:
    def __init__(self, is_in_use=False):
        self.dispatcher = SimpleNamespace(lock=threading.RLock())
        self.used, self.refuses = is_in_use, False

    def is_in_use(self):
        assert self.dispatcher.lock._is_owned()
        return self.used

    def stop_accepting(self):
        self.refuses = True


class Table:
    def __init__(self, *models):
        self.models = list(models)

    def ready(self, _):
        return self.models


def taken(models):
    def take_out(key):
        assert all(model.refuses and model.dispatcher.lock._is_owned() for model in models), (
            "missing can come between"
        )
        return [key]

    return remove_if_idle(Table(*models), "m", take_out)


def test_idle_versions_are_removed_while_none_can_accept_a_request():
    models = [Model(), Model()]
    assert taken(models) == ["m"]
    assert not any(model.dispatcher.lock._is_owned() for model in models)


def test_nothing_happens_if_a_version_is_in_use_or_none_is_ready():
    models = [Model(), Model(is_in_use=True)]
    assert not taken(models)
    assert not any(model.refuses for model in models)
    assert not taken([])
