from __future__ import annotations

from collections.abc import Iterator

import pytest

from tritonpy_worker import host as hosts

from .fake_host import FakeHost


@pytest.fixture
def host() -> Iterator[FakeHost]:
    """The host of the code under test."""
    fake = FakeHost()
    token = hosts._CURRENT.set(fake)
    yield fake
    hosts._CURRENT.reset(token)
