from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .peer import Peer, fp32

Start = Callable[..., Peer]
EXECUTE = "def execute(self, requests): return [pb_utils.InferenceResponse() for _ in requests]\n"


def query(peer: Peer) -> dict[str, Any]:
    return peer.query("is_ready")


def test_a_model_without_a_check_is_not_queried(start_worker: Start) -> None:
    assert start_worker(EXECUTE).started()["has_ready_check"] is False


@pytest.mark.parametrize("define", ["def", "async def"])
@pytest.mark.parametrize("value", [True, False])
def test_the_models_own_check_is_called(start_worker: Start, define: str, value: bool) -> None:
    peer = start_worker(f"{EXECUTE}{define} is_ready(self): return {value}")
    assert peer.started()["has_ready_check"] is True
    assert query(peer) == {"value": value}


@pytest.mark.parametrize("value", ["1", "None", "'yes'"])
def test_anything_but_a_bool_is_an_error(worker: Start, value: str) -> None:
    peer = worker(f"{EXECUTE}def is_ready(self): return {value}")
    assert query(peer) == {"error": [1, "is_ready() must return a boolean value"]}


def test_an_exception_is_reported(worker: Start) -> None:
    peer = worker(f"{EXECUTE}def is_ready(self): raise OSError('no database')")
    _, text = query(peer)["error"]
    assert text.startswith("OSError: no database\n\nAt:\n  ")
    assert text.endswith("model.py(7): is_ready\n")


@pytest.mark.parametrize("define", ["def", "async def"])
def test_the_check_runs_concurrently_with_execute(worker: Start, define: str) -> None:
    peer = worker(
        f"""
def initialize(self, args):
    self.checked = threading.Event()

{define} execute(self, requests):
    print("running")
    self.checked.wait()
    return [pb_utils.InferenceResponse() for _ in requests]

def is_ready(self):
    self.checked.set()
    return True
"""
    )
    peer.send_batches([[fp32("A", 1)]])
    peer.until_logged("running")
    assert query(peer) == {"value": True}
    peer.until_responses(1)


def test_a_hanging_check_does_not_block_execution(worker: Start) -> None:
    peer = worker(
        f"{EXECUTE}def is_ready(self):\n    print('checking')\n    threading.Event().wait()\n"
    )
    peer.send(peer.QUERY, [1], extras={"verb": "is_ready", "arguments": {}})
    peer.until_logged("checking")
    assert peer.execute([fp32("A", 1)])[0].error is None
    assert peer.stop() == 0
