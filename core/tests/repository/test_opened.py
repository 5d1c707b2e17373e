from __future__ import annotations

import pytest

from tritonpy.repository.opened import Opened, free


@pytest.fixture
def backend():
    freed = []

    class Freeing:
        @classmethod
        def unload(cls, shared):
            if shared == "stuck":
                raise OSError("it is stuck")
            freed.append(shared)

    Freeing.freed = freed
    return Freeing


def test_what_a_load_takes_is_its_own(backend):
    opened = Opened()
    opened.keep(3, backend, "handle")
    assert opened.take(3) == "handle"
    assert opened.take(3) is None
    opened.close()
    assert backend.freed == []


def test_what_no_load_took_is_freed_once(backend):
    opened = Opened()
    opened.keep(1, backend, "one")
    opened.keep(2, backend, "two")
    opened.keep(3, backend, None)
    opened.take(1)
    opened.close()
    opened.close()
    assert backend.freed == ["two"]


def test_a_backend_that_cannot_free_is_logged(backend, caplog):
    free(backend, "stuck")
    assert "backend Freeing failed to free what it opened" in caplog.text
    assert "it is stuck" in caplog.text
