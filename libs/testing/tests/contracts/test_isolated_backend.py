"""The contract of backends with isolated instances."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.tests.toys.heavy import OWN, WEIGHTS, HeavyBackend
from core.tests.toys.isolated import ISOLATED, ROOT, Caller, CrashingBackend
from libs.testing.tests.contracts import test_backend as threaded
from tritonpy_testing import BackendContract, BackendHarness, ToyEngine, ToyModel, model_config

CALLER = """
    name: "caller" backend: "caller"
    input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
"""


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


class TestIsolatedDoubler(threaded.DoublerContract):
    config = threaded.CONFIG + ISOLATED
    options = {"factor": 3.0}  # noqa: RUF012


class TestIsolatedStreaming(BackendContract):
    plugin_class = threaded.Streaming
    config = threaded.DECOUPLED + ISOLATED


def test_a_dead_process_fails_its_requests_and_is_not_restarted(tmp_path: Path) -> None:
    with BackendHarness(CrashingBackend, model_config(CALLER + ISOLATED), tmp_path) as harness:
        request = harness.request({"IN": np.array([CrashingBackend.EXITED], np.int32)})
        ((answer,),) = harness.execute(request)
    assert answer.error is not None
    assert "it exited with status 3" in answer.error.message


@pytest.mark.parametrize("where", ["", ISOLATED], ids=["thread", "process"])
def test_memory_usage_is_read_across_the_process(tmp_path: Path, where: str) -> None:
    with BackendHarness(HeavyBackend, model_config(CALLER + where), tmp_path) as harness:
        found = {(each.type, each.id): each.byte_size for each in harness.memory_usage()}
    assert found == {("GPU", 1): WEIGHTS, ("GPU", 0): OWN, ("CPU_PINNED", 0): 5, ("CPU", 0): 7}


def test_the_engine_of_the_harness_is_the_backends(tmp_path: Path) -> None:
    double = ToyModel(
        model_config(CALLER.replace('"caller"', '"double"')),
        lambda inputs: [{"OUT": inputs["IN"] * 2}],
    )
    with (
        ToyEngine([double]) as engine,
        BackendHarness(Caller, model_config(CALLER + ISOLATED), tmp_path, engine=engine) as harness,
    ):
        ((answer,),) = harness.execute(harness.request({"IN": np.array([5], np.int32)}))
    assert answer.outputs[0].numpy().tolist() == [21]


def test_an_error_at_process_start_fails_the_load(tmp_path: Path) -> None:
    broken = threaded.CONFIG.replace('name: "toy"', 'name: "broken"') + ISOLATED
    with (
        pytest.raises(Exception, match="FileNotFoundError"),
        BackendHarness(threaded.FromFile, model_config(broken), tmp_path),
    ):
        pass
