"""Closed loop: so many requests are always in flight; the next goes out when one is answered."""

from __future__ import annotations

from tritonpy_bench.load.exchange import Carrier
from tritonpy_bench.load.loop import Loop


class ClosedLoop(Loop):
    """Every carrier is always busy. A latency begins when its request is sent."""

    def start(self) -> None:
        """Send on every carrier."""
        for carrier in self._carriers:
            self._free(carrier)

    def _free(self, carrier: Carrier) -> None:
        if self._stopping or self._budget.spent:
            self._close(carrier)
        else:
            self._send(carrier)
