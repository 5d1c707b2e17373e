from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from .peer import Peer, fp32

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
Start = Callable[..., Peer]
LIMIT = 400 << 20
GREEDY = {
    "one large array": "np.ones(1 << 28)",
    "arrays without end": "kept = []\nwhile True: kept.append(np.ones(1 << 18))",
    "objects without end": "kept = []\nwhile True: kept.append([len(kept)])",
    "text without end": "text = 'x'\nwhile True: text += text",
}


@pytest.mark.parametrize("how", GREEDY)
def test_a_batch_that_exceeds_the_limit_fails_alone(worker: Start, how: str) -> None:
    lines = "\n".join(f"        {line}" for line in GREEDY[how].split("\n"))
    peer = worker(
        "def execute(self, requests):\n"
        "    if requests[0].inputs()[0].as_numpy()[0] < 0:\n"
        f"{lines}\n"
        "    return [pb_utils.InferenceResponse() for _ in requests]\n",
        memory_limit=LIMIT,
    )
    for _ in range(2):
        assert "message: MemoryError: " in peer.execute([fp32("A", -1)], [fp32("A", 1)])[
            0
        ].message.replace("numpy.core._exceptions._ArrayMemoryError", "MemoryError").replace(
            "_ArrayMemoryError", "MemoryError"
        )
        assert peer.execute([fp32("A", 1)])[0].error is None


def test_a_load_that_exceeds_the_limit_fails(start_worker: Start) -> None:
    peer = start_worker("def initialize(self, args):\n    np.ones(1 << 28)", memory_limit=LIMIT)
    assert "MemoryError: Unable to allocate" in peer.failed()


def test_shared_memory_of_the_server_is_not_counted(worker: Start) -> None:
    peer = worker(
        "def execute(self, requests):\n"
        "    return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.array([each.inputs()[0].as_numpy().size]))])"
        " for each in requests]\n",
        memory_limit=LIMIT,
    )
    large = fp32("A", *[0.0] * (1 << 20))
    (answer,) = peer.execute([large._replace(shape=(128 << 20,), data=large.data.repeat(128))])
    assert answer.outputs["OUT"].tolist() == [128 << 20]
