"""The way of sharing "fair": quotas at the door, and a fair order wherever requests wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar

from tritonpy import InferRequest, MetricKind, ModelMetrics, Options, ResourceExhausted, Sharing, now_ns
from tritonpy_queueing_fair.line import FairLine
from tritonpy_queueing_fair.options import FairOptions
from tritonpy_queueing_fair.quota import Quota
from tritonpy_queueing_fair.tenant_name import tenant_name

REFUSED, OTHERS = "tritonpy_refused_requests", "<other>"
_FEW = 256  # tenants


class FairSharing(Sharing):
    """Tenants are told apart by a header, or by the names that authenticators give to callers.

    The metric `tritonpy_refused_requests` has a label for each tenant that the configuration names, and one for all others.
    """

    Options: ClassVar[type[Options]] = FairOptions

    def __init__(self, options: FairOptions, metrics: ModelMetrics, clock: Callable[[], int] = now_ns) -> None:
        super().__init__(options, metrics)
        self._options = options
        self._header = options.header.lower()
        self._clock = clock
        self._lock = threading.Lock()
        self._quotas: dict[str, Quota] = {}
        self._most = _FEW  # before those that are idle are forgotten
        family = metrics.family(REFUSED, "Number of requests beyond their tenant's quota", MetricKind.COUNTER)
        self._refused = {name: family.metric({"tenant": name}) for name in (*options.tenants, OTHERS)}

    def admit(self, request: InferRequest) -> None:
        name = tenant_name(request, self._header)
        now = self._clock()
        with self._lock:
            quota = self._quota(name, now)
            retry_after_s = quota.take(now)
            limit = quota.limit if retry_after_s else ""
        if retry_after_s:
            self._refused[name if name in self._options.tenants else OTHERS].increment(1)
            who = f"tenant '{name[:120]}'" if name else "a caller without a name"
            raise ResourceExhausted(f"{who} has used up its quota of requests, {limit}", retry_after_s=retry_after_s)

    def headers(self) -> frozenset[str]:
        return frozenset({self._header} - {""})

    def ended(self, request: InferRequest) -> None:
        name = tenant_name(request, self._header)
        with self._lock:
            self._quotas[name].give_back()

    def line(self) -> FairLine:
        return FairLine(
            lambda request: tenant_name(request, self._header),
            lambda name: self._options.tenant(name).weight,
        )

    def _quota(self, name: str, now: int) -> Quota:
        quota = self._quotas.get(name)
        if quota is None:
            if len(self._quotas) >= self._most:
                self._quotas = {name: each for name, each in self._quotas.items() if not each.is_idle(now)}
                self._most = max(_FEW, 2 * len(self._quotas))
            quota = self._quotas[name] = Quota(self._options.tenant(name), now)
        return quota
