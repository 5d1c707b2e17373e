"""Models that call other models, and the server's side of the calls."""

from __future__ import annotations

from .peer import Call, Peer, fp32

HELPERS = """
def make_call(self, value, name="other", **more):
    inputs = [pb_utils.Tensor("IN", np.array([value], np.float32))]
    return pb_utils.InferenceRequest(model_name=name, requested_output_names=["OUT"], inputs=inputs, **more)

def value(self, response):
    if response.has_error():
        return [response.error().message(), int(response.error().code())]
    return [float(each.as_numpy()[0]) for each in response.output_tensors()]
"""
RESPOND = "return [pb_utils.InferenceResponse() for _ in requests]"


def execute(peer: Peer, count: int = 1, **extras: object) -> None:
    peer.send_batches([[fp32("A", 1)]] * count, **extras)


def finish(peer: Peer) -> str:
    """Wait for the end of the execution and return the output."""
    while not peer.done:
        peer.step()
    assert [answer.error for answer in peer.answers if answer.error] == []
    return "\n".join(log["message"] for log in peer.logs)


def answer(peer: Peer, call: Call, value: float) -> None:
    peer.answer_call(call, [fp32("OUT", value)])
