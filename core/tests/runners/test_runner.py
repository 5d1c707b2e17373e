from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import Future

import pytest

from tritonpy.runners.local import LocalRunner
from tritonpy.runners.runner import NewInstance, Runner
from tritonpy_types import InferRequest


class MinimalRunner(Runner):
    """Only what a runner must implement."""

    def add(self, new_instances: Sequence[NewInstance]) -> None: ...

    def serve(self, indexes: Collection[int]) -> None: ...

    def remove(self, indexes: Collection[int]) -> list[Future[None]]:
        return []

    def stop(self) -> None: ...

    def alive(self) -> bool:
        return True

    def is_ready(self) -> bool:
        return True


def test_handling_cancellations_is_optional() -> None:
    MinimalRunner().cancelled(InferRequest("m", {}, None))


def test_reporting_memory_is_optional() -> None:
    MinimalRunner().measure_memory()
    assert list(MinimalRunner().memory_usage()) == []


def test_required_methods_of_a_runner() -> None:
    assert Runner.__abstractmethods__ == {"add", "serve", "remove", "stop", "alive", "is_ready"}
    assert issubclass(LocalRunner, Runner)


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "serve",
        "remove",
        "stop",
        "alive",
        "is_ready",
        "cancelled",
        "memory_usage",
        "measure_memory",
    ],
)
def test_every_method_is_documented(name: str) -> None:
    assert getattr(Runner, name).__doc__
