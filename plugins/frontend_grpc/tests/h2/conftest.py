from __future__ import annotations

import pytest

from .fake_streams import Server


@pytest.fixture
def serve():
    return Server
