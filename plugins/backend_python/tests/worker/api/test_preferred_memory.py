from __future__ import annotations

import numpy as np
import pytest

from tritonpy_worker.api.preferred_memory import (
    TRITONSERVER_MEMORY_CPU,
    TRITONSERVER_MEMORY_GPU,
    PreferredMemory,
)


def test_kinds_have_tritons_numbers_and_names():
    assert (TRITONSERVER_MEMORY_GPU, TRITONSERVER_MEMORY_CPU) == (0, 1)
    assert repr(TRITONSERVER_MEMORY_GPU) == "<MemoryType.TRITONSERVER_MEMORY_GPU: 0>"
    assert str(TRITONSERVER_MEMORY_CPU) == "MemoryType.TRITONSERVER_MEMORY_CPU"


def test_preferred_memory_is_stored():
    memory = PreferredMemory(TRITONSERVER_MEMORY_GPU, np.int32(3))
    assert (memory.memory_type, memory.device_id) == (TRITONSERVER_MEMORY_GPU, 3)
    named = PreferredMemory(preferred_memory_type=TRITONSERVER_MEMORY_CPU)
    assert (named.memory_type, named.device_id) == (TRITONSERVER_MEMORY_CPU, 0)


@pytest.mark.parametrize(
    "arguments", [(1,), (None,), (TRITONSERVER_MEMORY_CPU, "x"), (TRITONSERVER_MEMORY_CPU, None)]
)
def test_wrong_argument_types_are_rejected(arguments):
    with pytest.raises(TypeError, match=r"^__init__\(\): incompatible constructor arguments"):
        PreferredMemory(*arguments)
