"""The response cache as one model version uses it: before the scheduler, and after the answer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from tritonpy.clock import now_ns
from tritonpy.errors import Cancelled, TritonError, Unavailable
from tritonpy.incidents import incident
from tritonpy.model.cache_key import KeyMaker, cacheable_size
from tritonpy.model.cached_response import to_tensors
from tritonpy.model.response_cache import ResponseCache
from tritonpy.statistics import Counters
from tritonpy.types import InferRequest, InferResponse, Tensor
from tritonpy.types.cache_look import CacheLook

log = logging.getLogger("tritonpy.model")


class Caller(Protocol):
    """What the cache needs of the loaded model."""

    def take_in(self, request: InferRequest) -> None:
        """Own `request` from now on; called under the lock."""

    def proceed(self, request: InferRequest) -> None:
        """Hand a request that was taken in to the scheduler. Raises what that raises."""

    def answer_unscheduled(self, request: InferRequest, response: InferResponse) -> None:
        """Answer a request that was taken in and never met the scheduler."""


class _Found(NamedTuple):
    """What a look-up gave: a key where the answer may be inserted, the inputs that it stands for, and the answer of a hit."""

    key: bytes | None
    inputs: dict[str, Tensor] | None
    response: InferResponse | None


NOTHING = _Found(None, None, None)


class ModelCache:
    """Looks requests up and keeps answers. Made at load for a model that asks for it, where the server has a cache.

    Two equal requests at the same time both run, as in Triton: to join them would tie the one to the deadline, the cancellation and
    the failure of the other.
    """

    def __init__(
        self, cache: ResponseCache, keys: KeyMaker, model: Caller, lock: threading.RLock, counters: Counters
    ) -> None:
        """`lock` is the model's, under which `counters` are changed."""
        self._cache = cache
        self._keys = keys
        self._model = model
        self._counters = counters
        self._under_way = 0
        self._lock = lock
        self._settled = threading.Condition(lock)
        self._given_up = False

    def serve(self, request: InferRequest) -> bool:
        """Take `request` in, and answer it or hand it to the scheduler: at once, or soon from another thread.

        False where its answer cannot come from here: then nothing happened. Raises what `take_in` does.
        """
        size = cacheable_size(request)
        if size is None:
            return False
        with self._lock:
            self._model.take_in(request)
            self._under_way += 1
        cache = self._cache
        look = request.cache = CacheLook(size, start_ns=now_ns())
        if not cache.works():
            self._go_on(request, look, NOTHING)
        elif cache.inline(look.size):
            self._go_on(request, look, self._look_up(request))
        else:
            later = _Later(request, partial(self._go_on, request, look))
            cache.run(lambda: later.run(self._look_up), later.late)
        return True

    def _look_up(self, request: InferRequest) -> _Found:
        inputs = request.inputs
        if request.regions is not None:
            # The client may write there while the model reads: its answer must be that of what was looked up.
            inputs = {name: _private(tensor) for name, tensor in inputs.items()}
        try:
            key = self._keys.key(request, inputs)
        except (OverflowError, TypeError, UnicodeError):
            return NOTHING
        return _Found(key, inputs, self._cache.lookup(key))

    def _go_on(self, request: InferRequest, look: CacheLook, found: _Found) -> None:
        look.lookup_ns = now_ns() - look.start_ns
        look.key = found.key
        try:
            if request.cancelled:
                self._refuse(request, Cancelled("Request cancelled"))
            elif found.response is not None:
                look.hit = True
                self._model.answer_unscheduled(request, found.response)
            elif self._given_up:
                self._refuse(request, Unavailable("Exit timeout expired, the request was not run"))
            else:
                request.inputs = found.inputs or request.inputs
                self._model.proceed(request)
        except TritonError as error:
            self._refuse(request, error)
        except Exception as error:
            self._refuse(request, incident(log, f"the scheduler of model {request.model_name}", error))
        finally:
            with self._settled:
                self._under_way -= 1
                self._settled.notify_all()

    def _refuse(self, request: InferRequest, error: TritonError) -> None:
        self._model.answer_unscheduled(request, InferResponse.failed(request, error))

    def keep(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        """Insert what the model answered, before anything becomes of it; large answers, and all where the cache blocks, from another thread."""
        for request, response in zip(requests, responses, strict=True):
            look = request.cache
            if look is None or look.key is None or look.hit or response.error is not None or not response.final:
                continue
            key, look.key = look.key, None
            outputs = to_tensors(response)
            if outputs is None or not self._cache.works():
                continue
            if self._cache.inline(sum([tensor.data.nbytes for tensor in outputs])):
                start = now_ns()
                self._cache.insert(key, outputs)
                look.insertion_ns = now_ns() - start
            else:
                self._cache.insert_later(key, outputs, self._inserted)

    def _inserted(self, insertion_ns: int) -> None:
        with self._lock:
            self._counters.cache_inserted(insertion_ns)

    def answered(self, request: InferRequest, response: InferResponse, _handed_ns: int, now_ns: int) -> None:
        """Count a hit or a miss with its answer, under the model's lock (`AnswerCounter`)."""
        look = request.cache
        if look is None or response.error is not None:
            return
        if look.hit:
            self._counters.cache_hit(now_ns - request.received_ns, look.start_ns - request.queued_ns, look.lookup_ns)
        else:
            self._counters.cache_missed(look.cache_ns)

    def settle(self) -> None:
        """Wait until no request is looked up; no further one comes."""
        with self._settled:
            while self._under_way:
                self._settled.wait()

    def give_up(self) -> None:
        """Hand nothing to the scheduler any more: the time to drain is over."""
        self._given_up = True


class _Later:
    """A look-up on another thread. Who is first goes on with the request: that thread, or the deadline."""

    def __init__(self, request: InferRequest, go_on: Callable[[_Found], None]) -> None:
        self._request: InferRequest | None = request
        self._turns = [go_on]

    def run(self, look_up: Callable[[InferRequest], _Found]) -> None:
        """Look up and go on, unless it is late already."""
        request = self._request
        if request is not None:
            self._go_on(look_up(request))

    def late(self) -> bool:
        """Go on as after a miss; False where the look-up was faster."""
        return self._go_on(NOTHING)

    def _go_on(self, found: _Found) -> bool:
        try:
            go_on = self._turns.pop()  # one thread gets it
        except IndexError:
            return False
        self._request = None  # the timer keeps this object until the deadline, and must not keep the tensors
        go_on(found)
        return True


def _private(tensor: Tensor) -> Tensor:
    return Tensor(tensor.name, tensor.datatype, tensor.shape, np.array(tensor.data))
