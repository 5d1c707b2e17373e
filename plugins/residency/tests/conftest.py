from __future__ import annotations

import pytest

from tritonpy_testing import RecordingSink


@pytest.fixture
def recorder():
    return RecordingSink()
