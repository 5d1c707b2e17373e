from __future__ import annotations

import threading
from types import SimpleNamespace

from tritonpy.repository.withdrawing import withdrawn


class Model:
    def __init__(self, in_use=False):
        self.dispatcher = SimpleNamespace(lock=threading.RLock())
        self.used, self.refuses = in_use, False

    def in_use(self):
        assert self.dispatcher.lock._is_owned()
        return self.used

    def refuse(self):
        self.refuses = True


class Table:
    def __init__(self, *models):
        self.models = list(models)

    def ready(self, _):
        return self.models


def taken(models):
    def take_out(key):
        assert all(model.refuses and model.dispatcher.lock._is_owned() for model in models), "nobody can come between"
        return [key]

    return withdrawn(Table(*models), "m", take_out)


def test_versions_that_nobody_uses_are_taken_out_while_none_can_take_a_request():
    models = [Model(), Model()]
    assert taken(models) == ["m"]
    assert not any(model.dispatcher.lock._is_owned() for model in models)


def test_nothing_happens_where_one_of_them_is_in_use_or_none_serves():
    models = [Model(), Model(in_use=True)]
    assert not taken(models)
    assert not any(model.refuses for model in models)
    assert not taken([])
