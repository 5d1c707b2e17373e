"""To which targets a request may go, the best first."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from tritonpy import InferRequest
from tritonpy_traffic.hashing import point, ranked
from tritonpy_traffic.spec import RouteSpec, Target
from tritonpy_traffic.spread import GOLDEN, SQUARE_ROOT_OF_2, Spread


class Balance:
    """The weights of one route. The caller holds the route's lock.

    A request with a key goes where the key belongs; without one the targets take turns. A sequence that is not sticky by anything else is so by its id.
    """

    def __init__(self, route: str, spec: RouteSpec) -> None:
        self._route = route
        self._header = "" if spec.sticky is None else spec.sticky.header.lower()
        self._parameter = "" if spec.sticky is None else spec.sticky.parameter
        self._targets: dict[str, Target] = {target.label: target for target in spec.targets if target.weight > 0}
        self._weights = [(target.label, target.weight) for target in spec.targets if target.weight > 0]
        self._bounds = list(accumulate(weight for _, weight in self._weights))
        self._orders = [self._rotated(first) for first in range(len(self._weights))]
        self._turns = Spread(GOLDEN)
        self._tries = Spread(SQUARE_ROOT_OF_2)

    def _rotated(self, first: int) -> list[Target]:
        targets = list(self._targets.values())
        return [targets[first], *targets[:first], *targets[first + 1 :]]

    def key(self, request: InferRequest) -> str:
        """Return what makes the request stick, empty where nothing does."""
        found: object = None
        if self._header and request.headers is not None:
            found = request.headers.get(self._header)
        elif self._parameter:
            found = request.parameters.get(self._parameter)
        if found is None and request.sequence is not None:
            found = request.sequence.id
        return "" if found is None else str(found)

    def targets(self, key: str) -> list[Target]:
        """Return the targets in the order in which they are to be tried."""
        if len(self._orders) == 1:
            return self._orders[0]
        if key:
            return [self._targets[label] for label in ranked(self._route, key, self._weights)]
        place = bisect_right(self._bounds, self._turns.next() * self._bounds[-1])
        return self._orders[min(place, len(self._orders) - 1)]

    def wants_canary(self, key: str, share: float) -> bool:
        """Say whether the request is among the `share` that tries the canary: keys join when it grows, and leave when it shrinks, no others."""
        if share >= 1:
            return True
        return (point(self._route, "canary", key) if key else self._tries.next()) < share
