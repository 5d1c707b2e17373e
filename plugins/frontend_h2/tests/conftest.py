from __future__ import annotations

import pytest

from .h2_like import Server


@pytest.fixture
def serve():
    return Server
