from __future__ import annotations

import grpc
import pytest

from tritonpy import Cancelled, Internal, ResourceExhausted
from tritonpy_frontend_grpc.deadline import DeadlineExceeded
from tritonpy_frontend_grpc.grpcio.servicer import abort
from tritonpy_protos import METHODS

from ..fake_engine import FakeEngine, run, serving
from ..test_stream_call import infer_request

INFER = next(method for method in METHODS if method.name == "ModelInfer")


class FakeContext:
    def __init__(self):
        self.aborted_with = None

    async def abort(self, *aborted_with):
        self.aborted_with = aborted_with


@pytest.mark.parametrize(
    ("error", "aborted_with"),
    [
        (Internal("no"), (grpc.StatusCode.INTERNAL, "no", ())),
        (Cancelled("gone"), (grpc.StatusCode.CANCELLED, "gone", ())),
        (DeadlineExceeded("late"), (grpc.StatusCode.DEADLINE_EXCEEDED, "late", ())),
        (
            ResourceExhausted("much", retry_after_s=3),
            (grpc.StatusCode.RESOURCE_EXHAUSTED, "much", (("retry-after", "3"),)),
        ),
    ],
)
def test_abort_sends_status_text_and_trailers(error, aborted_with):
    async def scenario():
        context = FakeContext()
        await abort(context, error)
        assert context.aborted_with == aborted_with

    run(scenario)


def test_abort_clears_the_traceback_of_the_error():
    async def scenario():
        with pytest.raises(Internal) as raised:
            _fail()
        error = raised.value
        await abort(FakeContext(), error)
        assert (error.__traceback__, error.__context__, error.__cause__) == (None, None, None)

    run(scenario)


def _fail():
    try:
        1 / 0  # noqa: B018
    except ZeroDivisionError as cause:
        raise Internal("no") from cause


def test_similar_requests_get_their_own_responses():
    async def scenario():
        async with (
            serving(FakeEngine()) as frontend,
            grpc.aio.insecure_channel(frontend.address()) as channel,
        ):
            infer = channel.unary_unary(
                INFER.path, INFER.request.SerializeToString, INFER.response.FromString
            )
            for number in range(5):  # the first two are parsed, the others cached
                answer = await infer(
                    infer_request("identity", str(number), raw=bytes([number]) * 4)
                )
                assert (answer.id, answer.raw_output_contents[0]) == (
                    str(number),
                    bytes([number]) * 4,
                )

    run(scenario)
