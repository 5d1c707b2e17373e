"""Many interleaved sequences, checked against a plain accumulator: no loss, reordering or mixing.

`TRITONPY_SEQUENCES` is the number of sequences (2000 is the full test). `TRITONPY_SEED` repeats a
run.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

from tests.conftest import Models, Serve, ServerProcess
from tests.sequence_clients import plans, run_all
from tests.sequence_models import PYTHON, STRATEGIES, onnx_config, onnx_model, python_config

SEQUENCES = int(os.environ.get("TRITONPY_SEQUENCES", "200"))
SEED = int(os.environ.get("TRITONPY_SEED", "0")) or Random().randrange(1, 1 << 32)
COUNTS = (1, 2, 3, 4) if SEQUENCES >= 2000 else (1, 3)


@pytest.fixture(scope="module")
def stateful(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Any:
    models = Models(tmp_path_factory.mktemp("stateful") / "models")
    for strategy in STRATEGIES:
        for count in COUNTS:
            config = python_config(strategy, count)
            models.repository.add(f"python_{strategy}_{count}", config, {1: {"model.py": PYTHON}})
            config = onnx_config(strategy, count)
            models.repository.add(
                f"onnx_{strategy}_{count}", config, {1: {"model.onnx": onnx_model()}}
            )
    with serve(f"--model-repository={models.path}") as served:
        yield served


@pytest.mark.parametrize("backend", ["python", "onnx"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_interleaved_sequences_match_a_plain_accumulator(
    stateful: ServerProcess, strategy: str, backend: str
) -> None:
    print(f"TRITONPY_SEED={SEED} TRITONPY_SEQUENCES={SEQUENCES}")
    random = Random(f"{SEED} {strategy} {backend}")
    names = [f"{backend}_{strategy}_{count}" for count in COUNTS]
    sent = plans(random, names, SEQUENCES // 4)
    run_all(stateful.http, stateful.grpc, sent, random)
    assert {plan.id: plan.responses for plan in sent} == {plan.id: plan.expected for plan in sent}
    for name in names:
        (statistics,) = stateful.request(f"/v2/models/{name}/stats").json()["model_stats"]
        counts = statistics["inference_stats"]
        requests = sum(len(plan.values) for plan in sent if plan.model == name)
        assert (counts["success"]["count"], counts["fail"]["count"]) == (requests, 0)
