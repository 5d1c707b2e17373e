from __future__ import annotations

import numpy as np

from tritonpy.runners.workers.on_host import on_host
from tritonpy.types import Tensor

CUDA = (2, 0)


class _OnDevice:
    """Host memory that says it is elsewhere until it is asked for."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_what_lies_on_a_device_is_copied_and_the_rest_is_passed_on() -> None:
    here = Tensor.from_numpy("A", np.arange(3, dtype=np.float32))
    text = Tensor.from_numpy("B", np.array([b"x"], np.object_))
    away = Tensor("C", "FP32", (2,), _OnDevice(np.array([1, 2], np.float32)), CUDA)
    one, two, three = on_host(iter([here, text, away]))
    assert (one, two) == (here, text)
    assert (three.name, three.device, three.data.tolist()) == ("C", (1, 0), [1.0, 2.0])
