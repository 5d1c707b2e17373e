"""The sharing "fair": quotas at admission, and fair order in request queues."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar

from tritonpy import InferRequest, InferResponse, Options, ResourceExhausted, now_ns
from tritonpy.metrics import MetricKind, ModelMetrics
from tritonpy.scheduling import Sharing
from tritonpy_queueing_fair.fair_queue import FairQueue
from tritonpy_queueing_fair.options import FairOptions
from tritonpy_queueing_fair.quota import Quota
from tritonpy_queueing_fair.tenant_name import tenant_name
from tritonpy_queueing_fair.tokens import TokenCounter

REFUSED, OTHERS = "tritonpy_refused_requests", "<other>"
_MIN_LIMIT = 256


class FairSharing(Sharing):
    """Identifies tenants by a header, or by the names that authenticators give to clients.

    The metric `tritonpy_refused_requests` has a label for each configured tenant, and one for all
    others.
    """

    Options: ClassVar[type[Options]] = FairOptions

    def __init__(
        self, options: FairOptions, metrics: ModelMetrics, clock: Callable[[], int] = now_ns
    ) -> None:
        super().__init__(options, metrics)
        self._options = options
        self._header = options.header.lower()
        self._clock = clock
        self._lock = threading.Lock()
        self._quotas: dict[str, Quota] = {}
        self._tokens = TokenCounter()
        self.counts_responses = any(
            each.input_tokens_per_s or each.output_tokens_per_s
            for each in (options.default, *options.tenants.values())
        )
        self._limit = _MIN_LIMIT  # number of quotas before idle ones are removed
        family = metrics.family(
            REFUSED, "Number of requests beyond their tenant's quota", MetricKind.COUNTER
        )
        self._refused = {
            name: family.metric({"tenant": name}) for name in (*options.tenants, OTHERS)
        }

    def admit(self, request: InferRequest) -> None:
        name = tenant_name(request, self._header)
        now = self._clock()
        with self._lock:
            quota = self._quota(name, now)
            retry_after_s = quota.try_acquire(now)
            limit = quota.limit if retry_after_s else ""
        if retry_after_s:
            self._refused[name if name in self._options.tenants else OTHERS].increment(1)
            tenant = f"tenant '{name[:120]}'" if name else "a client without a name"
            raise ResourceExhausted(
                f"{tenant} exceeds its quota of {limit}", retry_after_s=retry_after_s
            )

    def headers(self) -> frozenset[str]:
        return frozenset({self._header} - {""})

    def responded(self, request: InferRequest, response: InferResponse) -> None:
        name = tenant_name(request, self._header)
        with self._lock:
            inputs, outputs = self._tokens.count(request, response)
            if inputs or outputs:
                self._quotas[name].use_tokens(inputs, outputs, self._clock())

    def ended(self, request: InferRequest) -> None:
        name = tenant_name(request, self._header)
        with self._lock:
            self._tokens.forget(request)
            self._quotas[name].release()

    def new_queue(self) -> FairQueue:
        return FairQueue(
            lambda request: tenant_name(request, self._header),
            lambda name: self._options.tenant(name).weight,
        )

    def _quota(self, name: str, now: int) -> Quota:
        quota = self._quotas.get(name)
        if quota is None:
            if len(self._quotas) >= self._limit:
                self._quotas = {
                    name: each for name, each in self._quotas.items() if not each.is_idle(now)
                }
                self._limit = max(_MIN_LIMIT, 2 * len(self._quotas))
            quota = self._quotas[name] = Quota(self._options.tenant(name), now)
        return quota
