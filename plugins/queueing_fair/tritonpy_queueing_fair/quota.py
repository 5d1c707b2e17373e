"""How much one tenant may ask for. No clock, no lock."""

from __future__ import annotations

from tritonpy_queueing_fair.options import Tenant

_SECOND = 1e9
_SOON_S = 1.0  # until somebody who has too many open requests may look again


class Quota:
    """What a tenant has left of its rate and its open requests; `open` counts those."""

    __slots__ = ("_left", "_looked_ns", "_tenant", "open")

    def __init__(self, tenant: Tenant, now_ns: int) -> None:
        self.open = 0
        self._tenant = tenant
        self._left = tenant.most_at_once
        self._looked_ns = now_ns

    def take(self, now_ns: int) -> float:
        """Let one more request in and return 0; or refuse it and return the seconds after which it may be tried again."""
        tenant = self._tenant
        if tenant.concurrent and self.open >= tenant.concurrent:
            return _SOON_S
        if tenant.requests_per_s:
            self._refill(now_ns)
            if self._left < 1:
                return (1 - self._left) / tenant.requests_per_s
            self._left -= 1
        self.open += 1
        return 0.0

    @property
    def limit(self) -> str:
        """What a request that would come now finds used up, in words."""
        tenant = self._tenant
        if tenant.concurrent and self.open >= tenant.concurrent:
            return f"{tenant.concurrent} open at the same time"
        return f"{tenant.requests_per_s:g} per second"

    def give_back(self) -> None:
        """Take note that one of its requests is over."""
        self.open -= 1

    def is_idle(self, now_ns: int) -> bool:
        """Say whether the tenant is as one that never came."""
        self._refill(now_ns)
        return not self.open and (not self._tenant.requests_per_s or self._left >= self._tenant.most_at_once)

    def _refill(self, now_ns: int) -> None:
        passed_ns, self._looked_ns = max(0, now_ns - self._looked_ns), max(now_ns, self._looked_ns)
        self._left = min(self._tenant.most_at_once, self._left + passed_ns / _SECOND * self._tenant.requests_per_s)
