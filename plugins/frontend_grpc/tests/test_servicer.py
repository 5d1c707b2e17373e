from __future__ import annotations

import grpc
import pytest

from tritonpy import Cancelled, Internal, ResourceExhausted
from tritonpy_frontend_grpc.deadline import DeadlineExceeded
from tritonpy_frontend_grpc.servicer import abort
from tritonpy_protos import METHODS

from .fake_engine import FakeEngine, run, serving
from .test_stream_call import asked

INFER = next(method for method in METHODS if method.name == "ModelInfer")


class Context:
    def __init__(self):
        self.said = None

    async def abort(self, *said):
        self.said = said


@pytest.mark.parametrize(
    ("error", "said"),
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
def test_an_error_ends_a_call_with_its_status_its_text_and_its_trailers(error, said):
    async def scenario():
        context = Context()
        await abort(context, error)
        assert context.said == said

    run(scenario)


def test_an_error_that_ended_a_call_holds_nothing_of_it():
    async def scenario():
        with pytest.raises(Internal) as raised:
            _fail()
        error = raised.value
        await abort(Context(), error)
        assert (error.__traceback__, error.__context__, error.__cause__) == (None, None, None)

    run(scenario)


def _fail():
    try:
        1 / 0  # noqa: B018
    except ZeroDivisionError as cause:
        raise Internal("no") from cause


def test_requests_that_are_alike_are_answered_alike():
    async def scenario():
        async with serving(FakeEngine()) as frontend, grpc.aio.insecure_channel(frontend.address()) as channel:
            infer = channel.unary_unary(INFER.path, INFER.request.SerializeToString, INFER.response.FromString)
            for number in range(5):  # the first two are parsed, the others known
                answer = await infer(asked("identity", str(number), raw=bytes([number]) * 4))
                assert (answer.id, answer.raw_output_contents[0]) == (str(number), bytes([number]) * 4)

    run(scenario)
