from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import Future

import pytest

from tritonpy.runners.local import LocalRunner
from tritonpy.runners.runner import Newcomer, Runner
from tritonpy.types import InferRequest


class Least(Runner):
    """No more than a runner must have."""

    def add(self, newcomers: Sequence[Newcomer]) -> None: ...

    def serve(self, indexes: Collection[int]) -> None: ...

    def remove(self, indexes: Collection[int]) -> list[Future[None]]:
        return []

    def stop(self) -> None: ...

    def alive(self) -> bool:
        return True

    def is_ready(self) -> bool:
        return True


def test_a_runner_need_not_care_about_cancellations() -> None:
    Least().cancelled(InferRequest("m", {}, None))


def test_a_runner_need_not_know_what_its_instances_hold() -> None:
    Least().measure_memory()
    assert list(Least().memory_usage()) == []


def test_what_a_runner_must_have() -> None:
    assert Runner.__abstractmethods__ == {"add", "serve", "remove", "stop", "alive", "is_ready"}
    assert issubclass(LocalRunner, Runner)


@pytest.mark.parametrize(
    "name", ["add", "serve", "remove", "stop", "alive", "is_ready", "cancelled", "memory_usage", "measure_memory"]
)
def test_every_method_is_documented(name: str) -> None:
    assert getattr(Runner, name).__doc__
