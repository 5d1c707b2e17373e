"""Rescheduling of requests by a Python model in a worker."""

from __future__ import annotations

from pathlib import Path

from plugins.backend_python.tests.serving import (
    NO_PORTS,
    ONE_IN_ONE_OUT,
    query,
    wait_for,
    workers,
    write_model,
)
from tritonpy_testing import running_server

THREE_TURNS = """
def initialize(self, args):
    self.turns = {}

def execute(self, requests):
    responses = []
    for request in requests:
        number = int(request.inputs()[0].as_numpy()[0, 0])
        self.turns[number] = self.turns.get(number, 0) + 1
        if self.turns[number] < 3:
            request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            responses.append(None)
        else:
            out = np.array([[number, self.turns[number]]], np.int64)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", out)]))
    return responses
"""


def test_a_rescheduled_request_is_executed_until_it_has_a_response(tmp_path: Path) -> None:
    write_model(
        tmp_path,
        "turns",
        THREE_TURNS,
        ONE_IN_ONE_OUT + "sequence_batching { iterative_sequence: true }",
    )
    with running_server(
        {"repositories": [{"url": str(tmp_path)}], "frontends": NO_PORTS}
    ) as server:
        assert [query(server, "turns", [number]).tolist() for number in (5, 6)] == [
            [[5, 3]],
            [[6, 3]],
        ]
        (statistics,) = server.engine.statistics("turns")
        assert (statistics.inference_stats.success.count, statistics.execution_count) == (2, 6)
        assert server.engine.gauges()["turns", "1"].pending == 0
    wait_for(lambda: not workers())
