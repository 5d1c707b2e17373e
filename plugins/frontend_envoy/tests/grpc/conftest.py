from __future__ import annotations

import pytest

from .pyvoy_like import Server


@pytest.fixture
def serve():
    return Server
