from __future__ import annotations

import pytest

from tritonpy.metrics import Duration, InferStatistics, ModelGauges, ModelStatistics
from tritonpy_testing import ToyEngine


class FakeEngine(ToyEngine):
    """An engine with known statistics."""

    def __init__(self):
        super().__init__([])
        self.numbers = []
        self.extras = {}

    def add(self, name="addsub", version="1", tags=None):
        times = InferStatistics(
            success=Duration(3, 66_299_999), fail=Duration(2, 5_000), queue=Duration(3, 167_000), compute_input=Duration(3, 161_500),
            compute_infer=Duration(3, 65_828_000), compute_output=Duration(3, 136_999), cache_hit=Duration(), cache_miss=Duration(),
        )  # fmt: skip
        self.numbers.append(ModelStatistics(name, version, 0, 6, 2, times, {}, [], []))
        failures = {"REJECTED": 1, "CANCELED": 0, "BACKEND": 1, "OTHER": 0}
        self.extras[name, version] = ModelGauges(failures, 4, 0.25, 0, tags or {})

    def statistics(self, name="", version=-1):
        return self.numbers

    def gauges(self):
        return self.extras


@pytest.fixture
def engine():
    with FakeEngine() as engine:
        yield engine
