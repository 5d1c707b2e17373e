from __future__ import annotations

import pytest

from tritonpy.runners.local import LocalRunner
from tritonpy.runners.runner import Runner
from tritonpy.types import InferRequest


class Least(Runner):
    """No more than a runner must have."""

    def start(self, instances: object) -> None: ...
    def stop(self) -> None: ...
    def alive(self) -> bool:
        return True

    def is_ready(self) -> bool:
        return True


def test_a_runner_need_not_care_about_cancellations() -> None:
    Least().cancelled(InferRequest("m", {}, None))


def test_what_a_runner_must_have() -> None:
    assert Runner.__abstractmethods__ == {"start", "stop", "alive", "is_ready"}
    assert issubclass(LocalRunner, Runner)


@pytest.mark.parametrize("name", ["start", "stop", "alive", "is_ready", "cancelled"])
def test_every_method_is_documented(name: str) -> None:
    assert getattr(Runner, name).__doc__
