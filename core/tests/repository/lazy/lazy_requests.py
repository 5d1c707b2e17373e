"""Requests and waits that several tests of lazy models use."""

from __future__ import annotations

from tritonpy_types.errors import Unavailable

from ...toys.hoard import memory_config
from ...toys.serving import ask


def error_in(recorder, request):
    (responses,) = recorder.wait(request, timeout_s=20)
    assert responses[-1].error is not None
    return responses[-1].error


def add_models(repository, *names, **values):
    for name in names:
        repository.add(name, memory_config(memory_bytes="1MiB", **values))


def retry_request(server, recorder, name, value=1):
    """Send a request as soon as a failed load may be retried."""
    while True:
        try:
            return ask(server.engine, recorder, name, [value])
        except Unavailable:
            continue
