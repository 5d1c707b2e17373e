"""What the answers of a decoupled model cost, by their place among the answers of their request."""

from __future__ import annotations

from collections import defaultdict
from copy import deepcopy
from dataclasses import dataclass

from tritonpy.api.engine import Duration, ResponseStatistics
from tritonpy.errors import Code
from tritonpy.types import InferRequest, InferResponse


@dataclass(slots=True)
class _Progress:
    """How far one request is: answers so far, and when the last of them was counted."""

    place: int
    since_ns: int


class ResponseCounters:
    """Plain numbers, changed under the model's lock.

    An answer's time begins with the execution, or with the answer before it. `compute_infer` lasts until the backend hands it over,
    `compute_output` until it is counted. What never ran was not answered by the model, and is left out.
    """

    def __init__(self) -> None:
        self._places: defaultdict[int, ResponseStatistics] = defaultdict(_nothing)
        self._open: dict[InferRequest, _Progress] = {}

    def answered(self, request: InferRequest, response: InferResponse, handed_ns: int, now_ns: int) -> None:
        """Count one answer that the backend handed over at `handed_ns`."""
        progress = self._open.pop(request, None)
        if request.batch is None:
            return
        if progress is None:
            progress = _Progress(0, request.batch.start_ns)
        # another thread's answer to the same request may have been counted since this one was handed over
        handed_ns = max(handed_ns, progress.since_ns)
        _count(self._places[progress.place], response, progress.since_ns, handed_ns, now_ns)
        if not response.final:
            self._open[request] = _Progress(progress.place + 1, now_ns)

    def snapshot(self) -> dict[str, ResponseStatistics]:
        """Return the protocol's view: by place, as text."""
        return {str(place): deepcopy(self._places[place]) for place in sorted(self._places)}


def _nothing() -> ResponseStatistics:
    return ResponseStatistics(*(Duration() for _ in range(6)))


def _count(place: ResponseStatistics, response: InferResponse, start_ns: int, handed_ns: int, end_ns: int) -> None:
    if response.error is not None and response.error.code is Code.CANCELLED:
        _add(place.cancel, end_ns - start_ns)
    elif response.error is not None:
        _add(place.compute_infer, end_ns - start_ns)
        _add(place.fail, end_ns - start_ns)
    elif not response.outputs:
        _add(place.compute_infer, end_ns - start_ns)
        _add(place.empty_response, end_ns - start_ns)
    else:
        _add(place.compute_infer, handed_ns - start_ns)
        _add(place.compute_output, end_ns - handed_ns)
        _add(place.success, end_ns - start_ns)


def _add(duration: Duration, ns: int) -> None:
    duration.count += 1
    duration.ns += ns
