"""Selection of the targets for a request, in order of preference."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from tritonpy import InferRequest
from tritonpy_traffic.hashing import point, ranked
from tritonpy_traffic.low_discrepancy import GOLDEN, SQUARE_ROOT_OF_2, LowDiscrepancySequence
from tritonpy_traffic.spec import RouteSpec, Target


class TargetSelector:
    """Selects targets by the weights of one route. The caller holds the route's lock.

    A request with a key goes to the key's target. Requests without a key are distributed evenly, by
    weight. A sequence without another key uses its id as key.
    """

    def __init__(self, route: str, spec: RouteSpec) -> None:
        self._route = route
        self._header = "" if spec.sticky is None else spec.sticky.header.lower()
        self._parameter = "" if spec.sticky is None else spec.sticky.parameter
        self._targets: dict[str, Target] = {
            target.label: target for target in spec.targets if target.weight > 0
        }
        self._weights = [
            (target.label, target.weight) for target in spec.targets if target.weight > 0
        ]
        self._bounds = list(accumulate(weight for _, weight in self._weights))
        self._orders = [self._rotate(first) for first in range(len(self._weights))]
        self._target_sequence = LowDiscrepancySequence(GOLDEN)
        self._canary_sequence = LowDiscrepancySequence(SQUARE_ROOT_OF_2)

    def _rotate(self, first: int) -> list[Target]:
        targets = list(self._targets.values())
        return [targets[first], *targets[:first], *targets[first + 1 :]]

    def key(self, request: InferRequest) -> str:
        """Return the stickiness key of `request`, empty if it has none."""
        found: object = None
        if self._header and request.headers is not None:
            found = request.headers.get(self._header)
        elif self._parameter:
            found = request.parameters.get(self._parameter)
        if found is None and request.sequence is not None:
            found = request.sequence.id
        return "" if found is None else str(found)

    def targets(self, key: str) -> list[Target]:
        """Return the targets in the order in which to try them."""
        if len(self._orders) == 1:
            return self._orders[0]
        if key:
            return [self._targets[label] for label in ranked(self._route, key, self._weights)]
        index = bisect_right(self._bounds, self._target_sequence.next() * self._bounds[-1])
        return self._orders[min(index, len(self._orders) - 1)]

    def is_canary_request(self, key: str, share: float) -> bool:
        """Return whether the request belongs to the `share` that is sent to the canary.

        If the share grows, every key of the canary stays there. If it shrinks, no key is added.
        """
        if share >= 1:
            return True
        return (point(self._route, "canary", key) if key else self._canary_sequence.next()) < share
