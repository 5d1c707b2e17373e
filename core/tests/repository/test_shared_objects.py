from __future__ import annotations

import pytest

from tritonpy.repository.shared_objects import SharedObjects, unload_shared


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


def test_a_taken_object_is_not_unloaded(backend):
    shared_objects = SharedObjects()
    shared_objects.store(3, backend, "handle")
    assert shared_objects.take(3) == "handle"
    assert shared_objects.take(3) is None
    shared_objects.close()
    assert backend.freed == []


def test_objects_that_no_load_took_are_unloaded_once(backend):
    shared_objects = SharedObjects()
    shared_objects.store(1, backend, "one")
    shared_objects.store(2, backend, "two")
    shared_objects.store(3, backend, None)
    shared_objects.take(1)
    shared_objects.close()
    shared_objects.close()
    assert backend.freed == ["two"]


def test_a_backend_that_cannot_free_is_logged(backend, caplog):
    unload_shared(backend, "stuck")
    assert "backend Freeing failed to free what it opened" in caplog.text
    assert "it is stuck" in caplog.text
