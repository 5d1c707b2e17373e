from __future__ import annotations

from collections.abc import Iterator

import pytest

from tritonpy_testing import ToyEngine

from .scripted_router import ScriptedRouter


@pytest.fixture
def engine() -> Iterator[ScriptedRouter]:
    """Models a and b, each with versions -1, 1 and 2, all of which succeed."""
    with ToyEngine() as toy:
        scripted = ScriptedRouter(toy)
        for name in "ab":
            for version in (-1, 1, 2):
                scripted.models[name, version] = scripted.good
        yield scripted
