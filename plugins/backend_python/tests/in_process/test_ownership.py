from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tritonpy_backend_python.in_process.ownership import has_other_references

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
def test_a_new_array_has_no_other_references(make: Callable[[], Any]) -> None:
    # Not in the assertion, because pytest's rewritten assertions hold references.
    holder = SimpleNamespace(data=make())
    assert not has_other_references(holder, "data")


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
def test_other_references_are_detected(make: Callable[[], Any]) -> None:
    holder = SimpleNamespace(data=make())
    assert has_other_references(holder, "data")


def test_a_variable_is_another_reference() -> None:
    holder = SimpleNamespace(data=np.ones(4))
    variable = holder.data
    assert has_other_references(holder, "data")
    del variable
    assert not has_other_references(holder, "data")
