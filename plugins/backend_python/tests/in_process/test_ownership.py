from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tritonpy_backend_python.in_process.ownership import is_held_elsewhere

kept: list[Any] = []


def keep(value: Any) -> Any:
    kept.append(value)
    return value


@pytest.fixture(autouse=True)
def empty() -> Any:
    yield
    kept.clear()


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.ones(4),
        lambda: np.ones(4) * 2,
        lambda: np.arange(4).reshape(2, 2),
        lambda: np.arange(4).reshape(2, 2)[0],
        lambda: np.array([1, 2]).astype(np.int8),
        lambda: np.ascontiguousarray(np.ones((3, 4)).T),
        lambda: np.zeros(0),
        lambda: np.array(3),
    ],
)
def test_what_was_just_made_is_nobody_elses(make: Callable[[], Any]) -> None:
    holder = SimpleNamespace(data=make())  # not in the assertion, which pytest rewrites so that it holds its parts
    assert not is_held_elsewhere(holder, "data")


@pytest.mark.parametrize(
    "make",
    [
        lambda: keep(np.ones(4)),
        lambda: keep(np.ones(4))[:2],
        lambda: keep(np.ones((2, 2))).reshape(4),
        lambda: keep(np.ones(4)[1:])[1:],
        lambda: keep(memoryview(np.ones(4))).obj,
        lambda: np.asarray(keep(memoryview(bytearray(8)))),
        lambda: np.frombuffer(bytearray(8), np.uint8),
        lambda: np.from_dlpack(np.ones(4)),
        lambda: keep([np.ones(4)])[0],
    ],
)
def test_what_somebody_could_write_to_is_noticed(make: Callable[[], Any]) -> None:
    holder = SimpleNamespace(data=make())
    assert is_held_elsewhere(holder, "data")


def test_a_variable_is_somebody() -> None:
    holder = SimpleNamespace(data=np.ones(4))
    variable = holder.data
    assert is_held_elsewhere(holder, "data")
    del variable
    assert not is_held_elsewhere(holder, "data")
