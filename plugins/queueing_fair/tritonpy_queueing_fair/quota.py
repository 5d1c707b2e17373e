"""Quota of one tenant: rates and requests in flight. Callers provide the lock and the time."""

from __future__ import annotations

from tritonpy_queueing_fair.options import Tenant

_SECOND = 1e9
_RETRY_S = 1.0  # retry time for a tenant with too many requests in flight


class _Bucket:
    """What is left of a rate: it fills up to `size`, and may become negative.

    Less than `least` is not enough for a request.
    """

    __slots__ = ("_refilled_ns", "kind", "least", "left", "rate", "size")

    def __init__(self, kind: str, rate: float, size: float, least: float, now_ns: int) -> None:
        self.kind = kind
        self.least = least
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

    __slots__ = ("_input", "_output", "_requests", "_tenant", "open")

    def __init__(self, tenant: Tenant, now_ns: int) -> None:
        self.open = 0
        self._tenant = tenant
        burst_s = tenant.token_burst_s
        inputs, outputs = tenant.input_tokens_per_s, tenant.output_tokens_per_s
        self._requests = _Bucket("requests", tenant.requests_per_s, tenant.burst_size, 1, now_ns)
        self._input = _Bucket("input tokens", inputs, inputs * burst_s, 0, now_ns)
        self._output = _Bucket("output tokens", outputs, outputs * burst_s, 0, now_ns)

    def try_acquire(self, now_ns: int) -> float:
        """Admit one more request and return 0, or return the seconds after which to retry."""
        if self._is_full:
            return _RETRY_S
        for bucket in (self._input, self._output, self._requests):
            if bucket.rate and (left := bucket.refill(now_ns)) < bucket.least:
                return (bucket.least - left) / bucket.rate
        if self._requests.rate:
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
        """The exhausted limit, as text."""
        if self._is_full:
            return f"{self._tenant.concurrent} in flight"
        for bucket in (self._input, self._output):
            if bucket.rate and bucket.left < bucket.least:
                return f"{bucket.rate:g} {bucket.kind} per second"
        return f"{self._requests.rate:g} per second"

    @property
    def _is_full(self) -> bool:
        limit = self._tenant.concurrent
        return bool(limit) and self.open >= limit

    def release(self) -> None:
        """Record the end of a request."""
        self.open -= 1

    def is_idle(self, now_ns: int) -> bool:
        """Return whether the quota is unused."""
        return not self.open and all(
            not bucket.rate or bucket.refill(now_ns) >= bucket.size
            for bucket in (self._requests, self._input, self._output)
        )
