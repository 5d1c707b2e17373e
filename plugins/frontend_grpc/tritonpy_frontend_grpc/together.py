"""Messages that are read in one go and differ in their data alone are handed over together: what is asked of each is asked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tritonpy import Engine, InferRequest, Sink
from tritonpy_frontend_grpc.wire.frames import PREFIX

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.call import InferCall
    from tritonpy_frontend_grpc.forms import Form

Arrived = tuple[bytes, "InferCall"]


class Together:
    """Collects between `begin` and `end`, and hands over in the order of arrival.

    `single` is told of calls that have to be handed over by themselves; `fail` ends a call whose request the engine does not take.
    """

    def __init__(
        self,
        engine: Engine,
        sink: Sink,
        single: Callable[[bytes, InferCall], None],
        fail: Callable[[InferCall, Exception], None],
    ) -> None:
        self._engine = engine
        self._sink = sink
        self._single = single
        self._fail = fail
        self._form: Form | None = None
        self._arrived: list[Arrived] = []
        self.collects = False

    def begin(self) -> None:
        """Collect from now on."""
        self.collects = True

    def end(self) -> None:
        """Hand over what came, and collect no more."""
        self.collects = False
        self.hand_over()

    def take(self, form: Form, raw: bytes, call: InferCall) -> None:
        """Collect a message of a form that `stacks`."""
        if form is not self._form:
            self.hand_over()
            self._form = form
        self._arrived.append((raw, call))

    def join(self, framed: bytes | memoryview, call: InferCall) -> bool:
        """Collect a message with its prefix that is of the form of the last one; False where it is not, or none was collected yet."""
        if self._form is None or not self._form.continues(framed):
            return False
        self._arrived.append((bytes(framed[PREFIX.size :]), call))
        return True

    def hand_over(self) -> None:
        """Hand over what came so far: what comes next must not overtake it."""
        form, self._form = self._form, None
        if form is None:
            return
        arrived, self._arrived = [each for each in self._arrived if not each[1].over], []
        if len(arrived) == 1:
            self._single(*arrived[0])
        elif arrived:
            try:
                self._hand_over(form, arrived)
            except Exception as error:  # each of them is answered, whatever happens
                for _, call in arrived:
                    self._fail(call, error)

    def _hand_over(self, form: Form, arrived: Sequence[Arrived]) -> None:
        requests: list[InferRequest] = []
        made = form.requests([raw for raw, _ in arrived], self._sink)
        for request, (raw, call) in zip(made, arrived, strict=True):
            if request is None:
                self._single(raw, call)
                continue
            request.tag = call
            request.deadline_ns = call.deadline_ns()
            call.request = request
            requests.append(request)
        if requests:
            self._engine.infer_alike(requests, self._refused)

    def _refused(self, request: InferRequest, error: Exception) -> None:
        self._fail(request.tag, error)
