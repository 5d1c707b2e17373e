"""Quota of one tenant: rate and requests in flight. Callers provide the lock and the time."""

from __future__ import annotations

from tritonpy_queueing_fair.options import Tenant

_SECOND = 1e9
_RETRY_S = 1.0  # retry time for a tenant with too many requests in flight


class Quota:
    """The remaining rate of a tenant, and `open`, its requests in flight."""

    __slots__ = ("_left", "_refilled_ns", "_tenant", "open")

    def __init__(self, tenant: Tenant, now_ns: int) -> None:
        self.open = 0
        self._tenant = tenant
        self._left = tenant.burst_size
        self._refilled_ns = now_ns

    def try_acquire(self, now_ns: int) -> float:
        """Admit one more request and return 0, or return the seconds after which to retry."""
        tenant = self._tenant
        if tenant.concurrent and self.open >= tenant.concurrent:
            return _RETRY_S
        if tenant.requests_per_s:
            self._refill(now_ns)
            if self._left < 1:
                return (1 - self._left) / tenant.requests_per_s
            self._left -= 1
        self.open += 1
        return 0.0

    @property
    def limit(self) -> str:
        """The exhausted limit, as text."""
        tenant = self._tenant
        if tenant.concurrent and self.open >= tenant.concurrent:
            return f"{tenant.concurrent} in flight"
        return f"{tenant.requests_per_s:g} per second"

    def release(self) -> None:
        """Record the end of a request."""
        self.open -= 1

    def is_idle(self, now_ns: int) -> bool:
        """Return whether the quota is unused."""
        self._refill(now_ns)
        return not self.open and (
            not self._tenant.requests_per_s or self._left >= self._tenant.burst_size
        )

    def _refill(self, now_ns: int) -> None:
        passed_ns, self._refilled_ns = (
            max(0, now_ns - self._refilled_ns),
            max(now_ns, self._refilled_ns),
        )
        self._left = min(
            self._tenant.burst_size, self._left + passed_ns / _SECOND * self._tenant.requests_per_s
        )
