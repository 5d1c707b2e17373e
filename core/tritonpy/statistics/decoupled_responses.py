"""Statistics of a decoupled model's responses, by their index within the request."""

from __future__ import annotations

from collections import defaultdict
from copy import deepcopy
from dataclasses import dataclass

from tritonpy.api.engine import Duration, ResponseStatistics
from tritonpy.errors import Code
from tritonpy.types import InferRequest, InferResponse


@dataclass(slots=True)
class _Progress:
    """The progress of one request: index of the next response, and time of the last one."""

    index: int
    since_ns: int


class DecoupledResponseCounters:
    """Counts per response index, changed under the model's lock.

    A response's time begins with the execution, or with the previous response. `compute_infer`
    lasts until the backend sends it, `compute_output` until it is counted. Requests that were never
    executed are left out.
    """

    def __init__(self) -> None:
        self._by_index: defaultdict[int, ResponseStatistics] = defaultdict(_nothing)
        self._in_flight: dict[InferRequest, _Progress] = {}

    def responded(self, request: InferRequest, response: InferResponse, handed_ns: int, now_ns: int) -> None:
        """Count one response that the backend sent at `handed_ns`."""
        progress = self._in_flight.pop(request, None)
        if request.batch is None:
            return
        if progress is None:
            progress = _Progress(0, request.batch.start_ns)
        # another thread's response to this request may have been counted meanwhile
        handed_ns = max(handed_ns, progress.since_ns)
        _count(self._by_index[progress.index], response, progress.since_ns, handed_ns, now_ns)
        if not response.final:
            self._in_flight[request] = _Progress(progress.index + 1, now_ns)

    def snapshot(self) -> dict[str, ResponseStatistics]:
        """Return the protocol statistics by index, as text."""
        return {str(index): deepcopy(self._by_index[index]) for index in sorted(self._by_index)}


def _nothing() -> ResponseStatistics:
    return ResponseStatistics(*(Duration() for _ in range(6)))


def _count(statistics: ResponseStatistics, response: InferResponse, start_ns: int, handed_ns: int, end_ns: int) -> None:
    if response.error is not None and response.error.code is Code.CANCELLED:
        _add(statistics.cancel, end_ns - start_ns)
    elif response.error is not None:
        _add(statistics.compute_infer, end_ns - start_ns)
        _add(statistics.fail, end_ns - start_ns)
    elif not response.outputs:
        _add(statistics.compute_infer, end_ns - start_ns)
        _add(statistics.empty_response, end_ns - start_ns)
    else:
        _add(statistics.compute_infer, handed_ns - start_ns)
        _add(statistics.compute_output, end_ns - handed_ns)
        _add(statistics.success, end_ns - start_ns)


def _add(duration: Duration, ns: int) -> None:
    duration.count += 1
    duration.ns += ns
