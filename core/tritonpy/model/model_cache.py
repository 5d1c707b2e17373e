"""The response cache of one model version: lookups before scheduling, insertions afterwards."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from tritonpy.model.cache_key import CacheKeyBuilder, cacheable_size
from tritonpy.model.cached_response import to_tensors
from tritonpy.model.response_cache import ResponseCache
from tritonpy.statistics import Counters
from tritonpy_types import InferRequest, InferResponse, Tensor
from tritonpy_types.clock import now_ns
from tritonpy_types.error_ids import internal_error
from tritonpy_types.errors import Cancelled, TritonError, Unavailable
from tritonpy_types.request import CacheLookup

log = logging.getLogger("tritonpy.model")


class CachedModel(Protocol):
    """The methods of a loaded model that the cache calls."""

    def accept(self, request: InferRequest) -> None:
        """Own `request` from now on; called under the model's lock."""

    def schedule(self, request: InferRequest) -> None:
        """Pass an accepted request to the scheduler. Raises what the scheduler raises."""

    def respond_unscheduled(self, request: InferRequest, response: InferResponse) -> None:
        """Respond to an accepted request that never reached the scheduler."""


class _LookupResult(NamedTuple):
    """Result of a lookup.

    `key` is set if the response may be inserted, `inputs` are the inputs that it covers, and
    `response` is set on a hit.
    """

    key: bytes | None
    inputs: Mapping[str, Tensor] | None
    response: InferResponse | None


NO_RESULT = _LookupResult(None, None, None)


class ModelResponseCache:
    """Looks up requests and inserts responses; created at load for models that enable the cache.

    Two equal requests at the same time are both executed, as in Triton. Joining them would tie one
    request to the deadline, cancellation and failure of the other.
    """

    def __init__(
        self,
        cache: ResponseCache,
        keys: CacheKeyBuilder,
        model: CachedModel,
        lock: threading.RLock,
        counters: Counters,
    ) -> None:
        """`lock` is the model's lock, which protects `counters`."""
        self._cache = cache
        self._keys = keys
        self._model = model
        self._counters = counters
        self._pending_lookups = 0
        self._lock = lock
        self._lookups_done = threading.Condition(lock)
        self._scheduling_stopped = False

    def serve(self, request: InferRequest) -> bool:
        """Accept `request`, and respond to it or schedule it, now or later from another thread.

        False if its response cannot be cached; the request is then not accepted. Raises what
        `accept` raises.
        """
        size = cacheable_size(request)
        if size is None:
            return False
        with self._lock:
            self._model.accept(request)
            self._pending_lookups += 1
        cache = self._cache
        lookup = request.cache = CacheLookup(size, start_ns=now_ns())
        if not cache.is_available():
            self._finish_lookup(request, lookup, NO_RESULT)
        elif cache.can_run_inline(lookup.size):
            self._finish_lookup(request, lookup, self._look_up(request))
        else:
            deferred = _DeferredLookup(request, partial(self._finish_lookup, request, lookup))
            cache.run(lambda: deferred.run(self._look_up), deferred.expire)
        return True

    def _look_up(self, request: InferRequest) -> _LookupResult:
        inputs = request.inputs
        if request.regions is not None:
            # The client may write to its shared memory meanwhile: look up and execute the same
            # copy.
            inputs = {name: _copied(tensor) for name, tensor in inputs.items()}
        try:
            key = self._keys.key(request, inputs)
        except (OverflowError, TypeError, UnicodeError):
            return NO_RESULT
        return _LookupResult(key, inputs, self._cache.lookup(key))

    def _finish_lookup(
        self, request: InferRequest, lookup: CacheLookup, result: _LookupResult
    ) -> None:
        lookup.lookup_ns = now_ns() - lookup.start_ns
        lookup.key = result.key
        try:
            if request.cancelled:
                self._reject(request, Cancelled("Request cancelled"))
            elif result.response is not None:
                lookup.hit = True
                self._model.respond_unscheduled(request, result.response)
            elif self._scheduling_stopped:
                self._reject(request, Unavailable("Exit timeout expired, the request was not run"))
            else:
                request.inputs = result.inputs or request.inputs
                self._model.schedule(request)
        except TritonError as error:
            self._reject(request, error)
        except Exception as error:
            self._reject(
                request, internal_error(log, f"the scheduler of model {request.model_name}", error)
            )
        finally:
            with self._lookups_done:
                self._pending_lookups -= 1
                self._lookups_done.notify_all()

    def _reject(self, request: InferRequest, error: TritonError) -> None:
        self._model.respond_unscheduled(request, InferResponse.failed(request, error))

    def store(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        """Insert the model's responses before they are postprocessed.

        Large responses, and all responses if the cache blocks, are inserted on another thread.
        """
        for request, response in zip(requests, responses, strict=True):
            lookup = request.cache
            if (
                lookup is None
                or lookup.key is None
                or lookup.hit
                or response.error is not None
                or not response.final
            ):
                continue
            key, lookup.key = lookup.key, None
            outputs = to_tensors(response)
            if outputs is None or not self._cache.is_available():
                continue
            if self._cache.can_run_inline(sum([tensor.data.nbytes for tensor in outputs])):
                start = now_ns()
                self._cache.insert(key, outputs)
                lookup.insertion_ns = now_ns() - start
            else:
                self._cache.insert_later(key, outputs, self._inserted)

    def _inserted(self, insertion_ns: int) -> None:
        with self._lock:
            self._counters.cache_inserted(insertion_ns)

    def responded(
        self, request: InferRequest, response: InferResponse, _response_ns: int, now_ns: int
    ) -> None:
        """Count a hit or a miss with its response, under the model's lock (`AnswerCounter`)."""
        lookup = request.cache
        if lookup is None or response.error is not None:
            return
        if lookup.hit:
            self._counters.cache_hit(
                now_ns - request.received_ns, lookup.start_ns - request.queued_ns, lookup.lookup_ns
            )
        else:
            self._counters.cache_missed(lookup.cache_ns)

    def wait_for_lookups(self) -> None:
        """Wait until no lookup is in flight. The model must accept no further requests."""
        with self._lookups_done:
            while self._pending_lookups:
                self._lookups_done.wait()

    def stop_scheduling(self) -> None:
        """Reject requests whose lookup finishes from now on: the drain timeout has expired."""
        self._scheduling_stopped = True


class _DeferredLookup:
    """A lookup on another thread.

    Either that thread or the deadline continues the request, whichever is first.
    """

    def __init__(
        self, request: InferRequest, continue_request: Callable[[_LookupResult], None]
    ) -> None:
        self._request: InferRequest | None = request
        self._continuations = [continue_request]

    def run(self, look_up: Callable[[InferRequest], _LookupResult]) -> None:
        """Look up and continue the request, unless the deadline has passed."""
        request = self._request
        if request is not None:
            self._continue(look_up(request))

    def expire(self) -> bool:
        """Continue as after a miss; return False if the lookup was faster."""
        return self._continue(NO_RESULT)

    def _continue(self, result: _LookupResult) -> bool:
        try:
            continue_request = self._continuations.pop()  # only one thread succeeds
        except IndexError:
            return False
        # The timer keeps this object until the deadline; release the tensors now.
        self._request = None
        continue_request(result)
        return True


def _copied(tensor: Tensor) -> Tensor:
    return Tensor(tensor.name, tensor.datatype, tensor.shape, np.array(tensor.data))
