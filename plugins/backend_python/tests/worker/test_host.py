from __future__ import annotations

import threading
from types import ModuleType

import pytest

from tritonpy_worker import host as hosts

from .api.fake_host import FakeHost


def in_a_thread(act):
    found = []
    thread = threading.Thread(target=lambda: found.append(act()))
    thread.start()
    thread.join()
    return found[0]


def test_code_belongs_to_the_current_host():
    one, other = FakeHost(), FakeHost()
    with hosts.using(one):
        with hosts.using(other):
            assert hosts.current() is other
        assert hosts.current() is one
        assert in_a_thread(hosts.find) is None
    assert hosts.find() is None


def test_outside_of_models_there_is_no_server():
    with pytest.raises(RuntimeError, match="only from a model"):
        hosts.current()


def test_threads_are_identified_by_their_code():
    host, module = FakeHost(), ModuleType("model")
    module.__dict__["__builtins__"] = {**__builtins__, hosts.HOST_OF_CODE: host}
    exec("def run(act): return act()", vars(module))  # noqa: S102
    assert module.run(lambda: in_a_thread(hosts.find)) is None
    assert in_a_thread(lambda: module.run(hosts.current)) is host


@pytest.mark.parametrize("begun", [True, False])
def test_an_abandoned_request_is_ended(begun):
    host = FakeHost()
    host.end_abandoned(3, begun)
    ((number, response, final),) = host.sent
    assert (number, final) == (3, True)
    if begun:
        assert response is None
    else:
        assert response.error().message() == host.logged[0][1]
        assert (
            response.error()
            .message()
            .endswith("the model released the request without a response.")
        )


def test_models_can_only_call_others_while_executing():
    host = FakeHost()
    with pytest.raises(Exception, match="BLS is only supported during the 'execute' function"):
        host.check_executing()
    host.executing = True
    host.check_executing()
