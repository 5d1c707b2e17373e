"""The models that load at their first request: takes the requests that find them unloaded, and has them loaded."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from tritonpy.clock import now_ns
from tritonpy.config.server.memory_settings import MemorySettings
from tritonpy.errors import DecoupledRefused, NotFound, TritonError, Unavailable
from tritonpy.incidents import incident
from tritonpy.model.closed import ModelClosed
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.budget.no_room import NoRoom
from tritonpy.repository.lazy.cold_model import ColdModel
from tritonpy.repository.lazy.tally import LazyTally
from tritonpy.repository.lazy.waiting import WaitingRequests
from tritonpy.repository.table import Listed, ModelTable
from tritonpy.runners.deadlines import Deadlines
from tritonpy.runners.timer import Timer
from tritonpy.types import InferRequest, InferResponse

log = logging.getLogger("tritonpy.repository")

STOPPING = "Server is stopping, scheduler for model has stopped accepting new inference requests"
_RETURN_S = 5.0  # how long, at least, a model that was loaded for nobody in particular is kept for whoever was told to come again


class ColdModels:
    """`load(model)` loads one, with all that it stands on, and raises a TritonError where it does not serve then.

    A model is loaded by one thread at a time, and all its requests wait for that load. What waits is handed to the model in the order in which it
    came, before anybody else can find it.
    """

    def __init__(
        self,
        table: ModelTable,
        timer: Timer,
        settings: MemorySettings,
        load: Callable[[ColdModel], None],
        threads: int,
    ) -> None:
        self.settings = settings
        self.tally = LazyTally()
        self._table = table
        self._timer = timer
        self._deadlines = Deadlines(timer)
        self._load = load
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="lazy load")
        self._models: dict[str, ColdModel] = {}
        self._guard = threading.RLock()
        self._stopped = False

    def note(self, key: str, name: str, listed: Listed, fingerprint: str, pinned: bool, override: str | None) -> None:
        """Let the model `key` load at its first request, as it is listed now; what failed before may be tried again."""
        with self._guard:
            model = self._models.get(key)
            if model is None:
                waiting = WaitingRequests(partial(self._discard, key))
                model = ColdModel(key, name, listed, fingerprint, pinned, override, waiting)
                self._models[key] = model
            elif model.fingerprint != fingerprint or model.override != override:
                model.failures, model.retry_ns = 0, 0
                model.listed = listed
            model.fingerprint, model.pinned, model.override = fingerprint, pinned, override
            self._table.enlist(key, name, model.listed)

    def forget(self, keys: Iterable[str]) -> None:
        """Load these models no more; what waits for them is refused."""
        with self._guard:
            dropped = [model for key in keys if (model := self._models.pop(key, None)) is not None]
            for model in dropped:
                model.dropped = True
                self._table.strike(model.key)
            refused = [request for model in dropped for request in model.waiting.take()]
            self.tally.waiting -= len(refused)
        for request in refused:
            _refuse(request, NotFound(f"Request for unknown model: '{request.model_name}' was unloaded"))

    def get(self, key: str) -> ColdModel | None:
        """Return the model, None where it is not lazy."""
        return self._models.get(key)

    def all(self) -> list[ColdModel]:
        """Return all of them, by name."""
        with self._guard:
            return [self._models[key] for key in sorted(self._models)]

    def take(self, request: InferRequest) -> bool:
        """Own `request`, whose model was not found, until that is loaded; False where it is not lazy.

        Raises Unavailable where it does not wait: the load failed a moment ago, or requests do not wait on this server. Raises what the model has against it.
        """
        while True:
            with self._guard:
                serving = self._serving(request)
                if serving is None:
                    return self._take(request)
            try:
                serving.infer(request)
            except ModelClosed:
                continue  # it was unloaded again meanwhile
            return True

    def rouse(self, name: str) -> None:
        """Begin to load a model of which clients want to know more than its files tell."""
        with self._guard:
            model = self._models.get(self._table.key_of(name))
            if model is not None and not self._stopped and model.retry_ns <= now_ns():
                model.unasked = True
                self._begin(model)

    @contextmanager
    def arriving(self, key: str, models: Mapping[int, LoadedModel]) -> Iterator[None]:
        """Hand what waits to `models`, which the block lets everybody find."""
        with self._guard:
            cold = self._models.get(key)
            if cold is None:
                yield
                return
            newest = models[max(models)]
            asked = len(cold.waiting) > 0 or not cold.unasked
            cold.listed = Listed(newest.config, tuple(sorted(models)))
            cold.arrived(0.0 if asked else max(_RETURN_S, 2 * self.settings.retry_s))
            self._table.enlist(key, cold.name, cold.listed)
            for request in cold.waiting.take():
                version = newest.version if request.model_version == -1 else request.model_version
                self._hand_over(cold, request, models.get(version))
            yield

    def stop(self) -> None:
        """Load nothing more; what waits is refused."""
        with self._guard:
            self._stopped = True
            refused = [request for model in self._models.values() for request in model.waiting.take()]
            self.tally.waiting = 0
        for request in refused:
            _refuse(request, Unavailable(STOPPING))

    def close(self) -> None:
        """End the threads, after `stop`."""
        self._pool.shutdown(cancel_futures=True)

    def _serving(self, request: InferRequest) -> LoadedModel | None:
        try:
            return self._table.find(request.model_name, request.model_version)
        except TritonError:
            return None

    def _take(self, request: InferRequest) -> bool:
        listed = self._table.listed(request.model_name, request.model_version)
        model = self._models.get(self._table.key_of(request.model_name)) if listed is not None else None
        if listed is None or model is None:
            return False
        if self._stopped:
            raise Unavailable(STOPPING).with_request_id(request.id)
        if listed.config is not None and listed.config.model_transaction_policy.decoupled:
            _check_caller(request)
        self._refuse_early(model)
        if self.settings.first_request == "refuse":
            model.unasked = True
            self._begin(model)
            self.tally.refused += 1
            text = f"model '{model.name}' is not loaded yet, it is being loaded"
            raise Unavailable(_with_reason(text, model.against), retry_after_s=self.settings.retry_s)
        request.received_ns = request.received_ns or now_ns()
        model.waiting.add(request, now_ns() + int(self.settings.wait_s * 1e9))
        self.tally.waiting += 1
        self._watch(model)
        self._begin(model, nested=request.parent is not None)
        if request.deadline_ns:
            self._deadlines.watch(request)
        return True

    def _refuse_early(self, model: ColdModel) -> None:
        left_ns = model.retry_ns - now_ns()
        if left_ns > 0:
            self.tally.refused += 1
            raise Unavailable(_failure(model), retry_after_s=left_ns / 1e9)

    def _begin(self, model: ColdModel, *, nested: bool = False) -> None:
        """Load, unless it is being loaded. What a model calls that holds a thread of the pool, as it may while it loads, gets a thread of its own."""
        if model.loading:
            return
        model.loading = True
        model.against = ""
        if nested:
            threading.Thread(target=self._run, args=(model,), name=f"lazy load {model.key}", daemon=True).start()
        else:
            self._pool.submit(self._run, model)

    def _run(self, model: ColdModel) -> None:
        again = True
        while again:
            error = self._try(model)
            refused: Sequence[InferRequest]
            with self._guard:
                if error is None:
                    refused, again = self._left_over(model)
                else:
                    refused, again = self._failed(model, error), False
                model.loading, model.unasked = again, False
        for request in refused:
            _refuse(request, self._reason(model, error, request))

    def _try(self, model: ColdModel) -> TritonError | None:
        if self._stopped:
            return Unavailable(STOPPING)
        try:
            self._load(model)
        except TritonError as error:
            return error
        except Exception as error:
            return incident(log, f"loading '{model.key}'", error)
        self.tally.loads += 1
        return None

    def _left_over(self, model: ColdModel) -> tuple[list[InferRequest], bool]:
        """Return who asked for a version that there is not, and whether it is to be loaded again: others came when it was gone once more."""
        refused = []
        for request in model.waiting:
            serving = self._serving(request)
            if serving is not None:
                model.waiting.discard(request)
                self._hand_over(model, request, serving)
            elif request.model_version not in (-1, *model.listed.versions):
                model.waiting.discard(request)
                self.tally.waiting -= 1
                refused.append(request)
        return refused, len(model.waiting) > 0 and not self._stopped

    def _failed(self, model: ColdModel, error: TritonError) -> list[InferRequest]:
        self.tally.failures += 1
        abandoned = isinstance(error, NoRoom) and not len(model.waiting) and not model.unasked
        if not (model.dropped or self._stopped or abandoned):
            pause_s = model.failed(error.message.strip(), self.settings.retry_s)
            log.error("'%s' was to be loaded for a request; not tried again for %.1f s", model.key, pause_s)
        if not model.dropped:
            self._table.enlist(model.key, model.name, model.listed, model.reason)
        refused = model.waiting.take()
        self.tally.waiting -= len(refused)
        return refused

    def _reason(self, model: ColdModel, error: TritonError | None, request: InferRequest) -> TritonError:
        if error is None:
            return _no_version(request)
        if self._stopped:
            return Unavailable(STOPPING)
        left_s = max(model.retry_ns - now_ns(), 0) / 1e9
        return Unavailable(_failure(model), retry_after_s=left_s or self.settings.retry_s)

    def _hand_over(self, model: ColdModel, request: InferRequest, serving: LoadedModel | None) -> None:
        if serving is None:
            self.tally.waiting -= 1
            _refuse(request, _no_version(request))
            return
        try:
            serving.infer(request)
        except ModelClosed:  # unloaded again: it waits for the next load
            model.waiting.add(request, now_ns() + int(self.settings.wait_s * 1e9))
            return
        except TritonError as error:
            _refuse(request, error)
        except Exception as error:
            _refuse(request, incident(log, f"the scheduler of model {request.model_name}", error))
        else:
            self.tally.misses += 1
        self.tally.waiting -= 1

    def _discard(self, key: str, request: InferRequest) -> bool:
        with self._guard:
            model = self._models.get(key)
            if model is None or not model.waiting.discard(request):
                return False
            self.tally.waiting -= 1
            return True

    def _watch(self, model: ColdModel) -> None:
        """See to it that what waits is refused in time; one timer at a time."""
        overdue = model.waiting.next_overdue()
        if overdue is not None and model.expiry_ns == 0:
            model.expiry_ns = overdue
            self._timer.at(overdue, partial(self._expire, model))

    def _expire(self, model: ColdModel) -> None:
        with self._guard:
            model.expiry_ns = 0
            late = model.waiting.take(overdue_at=now_ns())
            self.tally.waiting -= len(late)
            self._watch(model)
        text = _with_reason(f"model '{model.name}' was not loaded within {self.settings.wait_s:g} s", model.against)
        for request in late:
            _refuse(request, Unavailable(text, retry_after_s=self.settings.retry_s))


def _no_version(request: InferRequest) -> NotFound:
    return NotFound(f"Request for unknown model: '{request.model_name}' version {request.model_version} is not found")


def _failure(model: ColdModel) -> str:
    return f"model '{model.name}' could not be loaded: {model.reason}"


def _with_reason(text: str, reason: str) -> str:
    return f"{text}: {reason}" if reason else text


def _check_caller(request: InferRequest) -> None:
    if not request.accepts_decoupled:
        raise DecoupledRefused(f"model '{request.model_name}' answers any number of times, the caller takes one answer")


def _refuse(request: InferRequest, error: TritonError) -> None:
    request.respond(InferResponse.failed(request, error))
