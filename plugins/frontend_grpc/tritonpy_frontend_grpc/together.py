"""Messages that are read in one go and differ in their data alone are handed over together: what is asked of each is asked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tritonpy import Engine, InferRequest, Sink
from tritonpy_frontend_grpc.wire.frames import PREFIX

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.call import InferCall
    from tritonpy_frontend_grpc.forms import Form

_PREFIX_SIZE = PREFIX.size


class Together:
    """Collects between `begin` and `end`, and hands over in the order of arrival.

    `is_open` is asked whether messages may be collected by what they have in common with the last one, without another look at them.
    `enter` is told of how many are taken before any of them is handed over. `single` is told of calls that have to be handed over by themselves;
    `fail` ends a call whose request the engine does not take.
    """

    def __init__(
        self,
        engine: Engine,
        sink: Sink,
        is_open: Callable[[], bool],
        enter: Callable[[int], None],
        single: Callable[[bytes, InferCall], None],
        fail: Callable[[InferCall, Exception], None],
    ) -> None:
        self._engine = engine
        self._sink = sink
        self._is_open = is_open
        self._enter = enter
        self._single = single
        self._fail = fail
        self._form: Form | None = None  # of those that are collected
        self._like: Form | None = None  # of those that may join them
        self._last: Form | None = None  # of the last ones that were collected before
        # Side by side.
        self._raws: list[bytes] = []
        self._calls: list[InferCall] = []
        self.collects = False

    def begin(self) -> None:
        """Collect from now on."""
        self.collects = True
        if self._last is not None and self._is_open():
            self._like = self._last

    def end(self) -> None:
        """Hand over what came, and collect no more."""
        self.collects = False
        self._last, self._like = self._like or self._last, None
        self.hand_over()

    def take(self, form: Form, raw: bytes, call: InferCall) -> None:
        """Collect a message of a form that `stacks`."""
        if form is not self._form:
            self.hand_over()
            self._form = self._like = form
        self._raws.append(raw)
        self._calls.append(call)

    def join(self, framed: bytes | memoryview, call: InferCall) -> bool:
        """Collect a message with its prefix that is of the form of the last one; False where it is not, or there was none."""
        like = self._like
        if like is None or not like.continues(framed):
            return False
        self._form = like
        self._raws.append(bytes(framed[_PREFIX_SIZE:]))
        self._calls.append(call)
        return True

    def hand_over(self) -> None:
        """Hand over what came so far: what comes next must not overtake it."""
        form, self._form = self._form, None
        if form is None:
            return
        raws, calls = self._raws, self._calls
        self._raws, self._calls = [], []
        self._enter(len(calls))  # those that left meanwhile were counted out
        if any([call.over for call in calls]):
            raws = [raw for raw, call in zip(raws, calls, strict=True) if not call.over]
            calls = [call for call in calls if not call.over]
        if len(calls) == 1:
            self._single(raws[0], calls[0])
        elif calls:
            try:
                self._hand_over(form, raws, calls)
            except Exception as error:  # each of them is answered, whatever happens
                for call in calls:
                    self._fail(call, error)

    def _hand_over(self, form: Form, raws: Sequence[bytes], calls: Sequence[InferCall]) -> None:
        requests: list[InferRequest] = []
        for request, raw, call in zip(form.requests(raws, self._sink), raws, calls, strict=True):
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
