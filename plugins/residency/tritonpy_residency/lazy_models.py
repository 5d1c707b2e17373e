"""The lazy models of a server: holds requests for models that are not loaded, and loads these."""

from __future__ import annotations

import logging
import threading
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from tritonpy import (
    DecoupledRefused,
    InferRequest,
    InferResponse,
    NotFound,
    TritonError,
    Unavailable,
    now_ns,
)
from tritonpy.frontend import internal_error
from tritonpy.repository import (
    Deadlines,
    InsufficientCapacity,
    LazyListing,
    LoadedModel,
    ModelClosed,
    ResidencyContext,
    ResidencyPolicy,
)
from tritonpy_residency.lazy_counters import LazyCounters
from tritonpy_residency.lazy_model import LazyModel
from tritonpy_residency.waiting_requests import WaitingRequests

log = logging.getLogger("tritonpy.repository")

STOPPING = "Server is stopping, scheduler for model has stopped accepting new inference requests"
_MIN_KEEP_S = 5.0  # how long, at least, a model stays loaded for clients that must retry


class LazyModels(ResidencyPolicy):
    """The lazy models by qualified name.

    One thread loads a model, and all its requests wait for that load. They are passed
    to the model in the order of their arrival, before others can find the model.
    """

    def __init__(self, context: ResidencyContext) -> None:
        self.settings = context.settings
        self.counters = LazyCounters()
        self._table = context.table
        self._timer = context.timer
        self._deadlines = Deadlines(context.timer)
        self._pool = ThreadPoolExecutor(context.threads, thread_name_prefix="lazy load")
        self._models: dict[str, LazyModel] = {}
        self._guard = threading.RLock()
        self._stopped = False

    def add(
        self,
        key: str,
        name: str,
        listing: LazyListing,
        fingerprint: str,
        pinned: bool,
        override: str | None,
    ) -> None:
        """Register the model `key`, or update its listing.

        After a change of its files or configuration, a failed load may be retried.
        """
        with self._guard:
            model = self._models.get(key)
            if model is None:
                waiting = WaitingRequests(partial(self._discard, key))
                model = LazyModel(key, name, listing, fingerprint, pinned, override, waiting)
                self._models[key] = model
            elif model.fingerprint != fingerprint or model.override != override:
                model.failures, model.retry_ns = 0, 0
                model.listing = listing
            model.fingerprint, model.pinned, model.override = fingerprint, pinned, override
            self._table.add_lazy(key, name, model.listing)

    def remove(self, keys: Iterable[str]) -> None:
        """Remove these models, and reject the requests that wait for them."""
        with self._guard:
            dropped = [model for key in keys if (model := self._models.pop(key, None)) is not None]
            for model in dropped:
                model.removed = True
                self._table.remove_lazy(model.key)
            rejected = [request for model in dropped for request in model.waiting.take()]
            self.counters.waiting -= len(rejected)
        for request in rejected:
            _reject(
                request, NotFound(f"Request for unknown model: '{request.model_name}' was unloaded")
            )

    def keys(self) -> list[str]:
        """Return the names of all lazy models, sorted."""
        return [model.key for model in self.all()]

    def fingerprint(self, key: str) -> str | None:
        """Return the fingerprint of the model's files, or None if it is not lazy."""
        model = self._models.get(key)
        return model.fingerprint if model is not None else None

    def get(self, key: str) -> LazyModel | None:
        """Return the model, or None if it is not lazy."""
        return self._models.get(key)

    def all(self) -> list[LazyModel]:
        """Return all lazy models, by name."""
        with self._guard:
            return [self._models[key] for key in sorted(self._models)]

    def hold(self, request: InferRequest) -> bool:
        """Own `request` until its model is loaded; False if the model is not lazy.

        Raises `Unavailable` shortly after a failed load, or if requests do not wait on this server.
        Raises the model's error if it is loaded meanwhile and rejects the request.
        """
        while True:
            with self._guard:
                serving = self._serving(request)
                if serving is None:
                    return self._hold(request)
            try:
                serving.infer(request)
            except ModelClosed:
                continue  # unloaded again meanwhile
            return True

    def start_load(self, name: str) -> None:
        """Start to load a model whose files do not define its inputs and outputs."""
        with self._guard:
            model = self._models.get(self._table.key_of(name))
            if model is not None and not self._stopped and model.retry_ns <= now_ns():
                model.load_anyway = True
                self._begin(model)

    @contextmanager
    def handover(self, key: str, models: Mapping[int, LoadedModel]) -> Iterator[None]:
        """Pass waiting requests to `models`, then run the block, which adds them to the table."""
        with self._guard:
            lazy_model = self._models.get(key)
            if lazy_model is None:
                yield
                return
            newest = models[max(models)]
            was_requested = len(lazy_model.waiting) > 0 or not lazy_model.load_anyway
            lazy_model.listing = LazyListing(newest.config, tuple(sorted(models)))
            lazy_model.mark_loaded(
                0.0 if was_requested else max(_MIN_KEEP_S, 2 * self.settings.retry_s)
            )
            self._table.add_lazy(key, lazy_model.name, lazy_model.listing)
            for request in lazy_model.waiting.take():
                version = newest.version if request.model_version == -1 else request.model_version
                self._hand_over(lazy_model, request, models.get(version))
            yield

    def stop(self) -> None:
        """Load nothing more, and reject waiting requests."""
        with self._guard:
            self._stopped = True
            rejected = [
                request for model in self._models.values() for request in model.waiting.take()
            ]
            self.counters.waiting = 0
        for request in rejected:
            _reject(request, Unavailable(STOPPING))

    def close(self) -> None:
        """End the threads, after `stop`."""
        self._pool.shutdown(cancel_futures=True)

    @abstractmethod
    def _load(self, model: LazyModel) -> None:
        """Load a model with its members.

        Raises a `TritonError` if it does not serve afterwards: `InsufficientCapacity` if memory is
        missing.
        """

    def _serving(self, request: InferRequest) -> LoadedModel | None:
        try:
            return self._table.find(request.model_name, request.model_version)
        except TritonError:
            return None

    def _hold(self, request: InferRequest) -> bool:
        listing = self._table.lazy_listing(request.model_name, request.model_version)
        model = (
            self._models.get(self._table.key_of(request.model_name))
            if listing is not None
            else None
        )
        if listing is None or model is None:
            return False
        if self._stopped:
            raise Unavailable(STOPPING).with_request_id(request.id)
        if listing.config is not None and listing.config.model_transaction_policy.decoupled:
            _check_decoupled(request)
        self._reject_after_failure(model)
        if self.settings.first_request == "refuse":
            model.load_anyway = True
            self._begin(model)
            self.counters.refused += 1
            text = f"model '{model.name}' is not loaded yet, it is being loaded"
            raise Unavailable(
                _with_reason(text, model.blocked_reason), retry_after_s=self.settings.retry_s
            )
        request.received_ns = request.received_ns or now_ns()
        model.waiting.add(request, now_ns() + int(self.settings.wait_s * 1e9))
        self.counters.waiting += 1
        self._watch(model)
        self._begin(model, nested=request.parent is not None)
        if request.deadline_ns:
            self._deadlines.watch(request)
        return True

    def _reject_after_failure(self, model: LazyModel) -> None:
        left_ns = model.retry_ns - now_ns()
        if left_ns > 0:
            self.counters.refused += 1
            raise Unavailable(_failure(model), retry_after_s=left_ns / 1e9)

    def _begin(self, model: LazyModel, *, nested: bool = False) -> None:
        """Start to load the model unless it is being loaded.

        A call from a model that is itself loading in the pool gets its own thread, to avoid a
        deadlock.
        """
        if model.loading:
            return
        model.loading = True
        model.blocked_reason = ""
        if nested:
            threading.Thread(
                target=self._run, args=(model,), name=f"lazy load {model.key}", daemon=True
            ).start()
        else:
            self._pool.submit(self._run, model)

    def _run(self, model: LazyModel) -> None:
        again = True
        while again:
            error = self._try(model)
            rejected: Sequence[InferRequest]
            with self._guard:
                if error is None:
                    rejected, again = self._remaining(model)
                else:
                    rejected, again = self._failed(model, error), False
                model.loading, model.load_anyway = again, False
        for request in rejected:
            _reject(request, self._reason(model, error, request))

    def _try(self, model: LazyModel) -> TritonError | None:
        if self._stopped:
            return Unavailable(STOPPING)
        try:
            self._load(model)
        except TritonError as error:
            return error
        except Exception as error:
            return internal_error(log, f"loading '{model.key}'", error)
        self.counters.loads += 1
        return None

    def _remaining(self, model: LazyModel) -> tuple[list[InferRequest], bool]:
        """Return requests for missing versions, and whether to load the model again.

        It is loaded again if requests arrived after it was unloaded.
        """
        rejected = []
        for request in model.waiting:
            serving = self._serving(request)
            if serving is not None:
                model.waiting.discard(request)
                self._hand_over(model, request, serving)
            elif request.model_version not in (-1, *model.listing.versions):
                model.waiting.discard(request)
                self.counters.waiting -= 1
                rejected.append(request)
        return rejected, len(model.waiting) > 0 and not self._stopped

    def _failed(self, model: LazyModel, error: TritonError) -> list[InferRequest]:
        self.counters.failures += 1
        abandoned = (
            isinstance(error, InsufficientCapacity)
            and not len(model.waiting)
            and not model.load_anyway
        )
        if not (model.removed or self._stopped or abandoned):
            pause_s = model.record_failure(error.message.strip(), self.settings.retry_s)
            log.error(
                "failed to load '%s' for a request; not retried for %.1f s", model.key, pause_s
            )
        if not model.removed:
            self._table.add_lazy(model.key, model.name, model.listing, model.reason)
        rejected = model.waiting.take()
        self.counters.waiting -= len(rejected)
        return rejected

    def _reason(
        self, model: LazyModel, error: TritonError | None, request: InferRequest
    ) -> TritonError:
        if error is None:
            return _no_version(request)
        if self._stopped:
            return Unavailable(STOPPING)
        left_s = max(model.retry_ns - now_ns(), 0) / 1e9
        return Unavailable(_failure(model), retry_after_s=left_s or self.settings.retry_s)

    def _hand_over(
        self, model: LazyModel, request: InferRequest, serving: LoadedModel | None
    ) -> None:
        if serving is None:
            self.counters.waiting -= 1
            _reject(request, _no_version(request))
            return
        try:
            serving.infer(request)
        except ModelClosed:  # unloaded again: wait for the next load
            model.waiting.add(request, now_ns() + int(self.settings.wait_s * 1e9))
            return
        except TritonError as error:
            _reject(request, error)
        except Exception as error:
            _reject(
                request, internal_error(log, f"the scheduler of model {request.model_name}", error)
            )
        else:
            self.counters.misses += 1
        self.counters.waiting -= 1

    def _discard(self, key: str, request: InferRequest) -> bool:
        with self._guard:
            model = self._models.get(key)
            if model is None or not model.waiting.discard(request):
                return False
            self.counters.waiting -= 1
            return True

    def _watch(self, model: LazyModel) -> None:
        """Schedule the rejection of waiting requests at their deadline, one timer per model."""
        deadline_ns = model.waiting.next_overdue()
        if deadline_ns is not None and model.expiry_ns == 0:
            model.expiry_ns = deadline_ns
            self._timer.at(deadline_ns, partial(self._expire, model))

    def _expire(self, model: LazyModel) -> None:
        with self._guard:
            model.expiry_ns = 0
            late = model.waiting.take(overdue_at=now_ns())
            self.counters.waiting -= len(late)
            self._watch(model)
        text = _with_reason(
            f"model '{model.name}' was not loaded within {self.settings.wait_s:g} s",
            model.blocked_reason,
        )
        for request in late:
            _reject(request, Unavailable(text, retry_after_s=self.settings.retry_s))


def _no_version(request: InferRequest) -> NotFound:
    return NotFound(
        f"Request for unknown model: '{request.model_name}' version {request.model_version} is "
        "not found"
    )


def _failure(model: LazyModel) -> str:
    return f"model '{model.name}' could not be loaded: {model.reason}"


def _with_reason(text: str, reason: str) -> str:
    return f"{text}: {reason}" if reason else text


def _check_decoupled(request: InferRequest) -> None:
    if not request.accepts_decoupled:
        raise DecoupledRefused(
            f"model '{request.model_name}' is decoupled, but the caller accepts only one response"
        )


def _reject(request: InferRequest, error: TritonError) -> None:
    request.respond(InferResponse.failed(request, error))
