"""Quota of one tenant: rates and requests in flight. Callers provide the lock and the time."""

from __future__ import annotations

from tritonpy_queueing_fair.options import Tenant

_SECOND = 1e9
_RETRY_S = 1.0  # retry time for a tenant with too many requests in flight


class _Bucket:
    """What is left of a rate: it fills up to `size`, and may become negative."""

    __slots__ = ("_refilled_ns", "left", "rate", "size")

    def __init__(self, rate: float, size: float, now_ns: int) -> None:
        self.rate = rate
        self.size = size
        self.left = size
        self._refilled_ns = now_ns

    def refill(self, now_ns: int) -> float:
        """Add what the time since the last call allows, and return what is left."""
        passed_ns = max(0, now_ns - self._refilled_ns)
        self._refilled_ns = max(now_ns, self._refilled_ns)
        self.left = min(self.size, self.left + passed_ns / _SECOND * self.rate)
        return self.left


class Quota:
    """The remaining rates of a tenant, and `open`, its requests in flight.

    A request is admitted while tokens are left, whatever it then uses: how many tokens it needs is
    known only when it has ended. The next one waits until the rest is no longer negative.
    """

    __slots__ = ("_input", "_limit", "_output", "_requests", "_tenant", "open")

    def __init__(self, tenant: Tenant, now_ns: int) -> None:
        self.open = 0
        self._tenant = tenant
        self._limit = ""
        self._requests = _Bucket(tenant.requests_per_s, tenant.burst_size, now_ns)
        self._input, self._output = (
            _Bucket(rate, max(1.0, rate * tenant.token_burst_s), now_ns)
            for rate in (tenant.input_tokens_per_s, tenant.output_tokens_per_s)
        )

    def try_acquire(self, now_ns: int) -> float:
        """Admit one more request and return 0, or return the seconds after which to retry."""
        tenant = self._tenant
        if tenant.concurrent and self.open >= tenant.concurrent:
            self._limit = f"{tenant.concurrent} in flight"
            return _RETRY_S
        for bucket, kind, least in (
            (self._input, " input tokens", 0.0),
            (self._output, " output tokens", 0.0),
            (self._requests, "", 1.0),
        ):
            if bucket.rate and (left := bucket.refill(now_ns)) < least:
                self._limit = f"{bucket.rate:g}{kind} per second"
                return (least - left) / bucket.rate
        if tenant.requests_per_s:
            self._requests.left -= 1
        self.open += 1
        return 0.0

    def use_tokens(self, inputs: int, outputs: int, now_ns: int) -> None:
        """Record tokens of a request in flight."""
        for bucket, count in ((self._input, inputs), (self._output, outputs)):
            if bucket.rate:
                bucket.refill(now_ns)
                bucket.left -= count

    @property
    def limit(self) -> str:
        """The limit that refused the last request, as text."""
        return self._limit

    def release(self) -> None:
        """Record the end of a request."""
        self.open -= 1

    def is_idle(self, now_ns: int) -> bool:
        """Return whether the quota is unused."""
        return not self.open and all(
            not bucket.rate or bucket.refill(now_ns) >= bucket.size
            for bucket in (self._requests, self._input, self._output)
        )
