"""The thread that serves the backends of this process: their responses, logs and queries."""

from __future__ import annotations

import atexit
import itertools
import json
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Protocol

from tritonpy import ModelContext, TritonError
from tritonpy.execution import LogRecordMessage, write_record
from tritonpy.frontend import internal_error
from tritonpy.metrics import ModelMetrics
from tritonpy_backend_c.calls import Calls
from tritonpy_backend_c.library import error_number, load_library
from tritonpy_backend_c.queries import BackendQueries
from tritonpy_backend_c.wire import (
    CANCEL_CALL,
    LOG,
    METRIC,
    QUERY,
    Buffers,
    HostEvent,
    KnownTensors,
    Reader,
)

log = logging.getLogger("tritonpy.backend")

_IDLE_US = 1_000_000
_WATCHING_US = 5_000  # between two looks at whether requests are cancelled
_LEVELS = (logging.INFO, logging.WARNING, logging.ERROR, logging.DEBUG)


class EventHandler(Protocol):
    """An instance, as the host knows it."""

    def handle(self, event: HostEvent) -> None:
        """Handle an event of one of its requests."""

    def watch(self) -> bool:
        """Pass on cancellations; return whether there are requests to look at."""


class BackendHost:
    """The backends in C of this process. There is one object: `host()`."""

    def __init__(self) -> None:
        self.library = load_library()
        self._numbers = itertools.count(1)
        self._instances: dict[int, EventHandler] = {}
        self._models: dict[int, ModelContext] = {}
        self._calls = Calls(self.library, self._models, self._instances)
        self._queries = BackendQueries(self._models)
        self._buffers = Buffers()
        self._is_verbose: bool | None = None
        atexit.register(self.library.serve, 0, 0)
        self._serve_verbosely()
        threading.Thread(target=self._run, name="backends in C", daemon=True).start()

    def add_model(self, model: ModelContext) -> int:
        """Return a number for a model whose backend may send queries from now on."""
        number = next(self._numbers)
        self._models[number] = model
        self._serve_verbosely()
        return number

    def replace_model(self, number: int, model: ModelContext) -> None:
        """Use another context for a model: that of its loading instead of its completion."""
        self._models[number] = model
        self._queries.restore_metrics(number)

    def add_owner(self, metrics: ModelMetrics) -> int:
        """Return a number for a library that is no backend, and that creates `metrics`."""
        number = -next(self._numbers)  # negative: threads of backends never act for it
        self._queries.add_owner(number, metrics)
        self._serve_verbosely()
        return number

    def remove_model(self, number: int) -> None:
        """Forget a model, its metrics and its calls, or another owner of metrics."""
        self._queries.forget(number)
        self._models.pop(number, None)

    def add_instance(self, handler: EventHandler) -> int:
        """Return a number for an instance, whose events `handler` gets."""
        number = next(self._numbers)
        self._instances[number] = handler
        return number

    def remove_instance(self, number: int) -> None:
        """Forget an instance."""
        self._instances.pop(number, None)

    def _serve_verbosely(self) -> None:
        """Let the library drop verbose lines unless they are logged now."""
        is_verbose = log.isEnabledFor(logging.DEBUG)
        if is_verbose is not self._is_verbose:
            self._is_verbose = is_verbose
            self.library.serve(1, is_verbose)

    def _run(self) -> None:
        tensors = KnownTensors(self.library)
        watching = False
        while True:
            # An exception must not end this thread, on which every backend depends.
            try:
                self._serve_verbosely()
                self._serve(tensors, _WATCHING_US if watching else _IDLE_US)
                watching = any([each.watch() for each in list(self._instances.values())])
            except Exception:
                log.exception("events of backends in C could not be read")

    def _serve(self, tensors: KnownTensors, timeout_us: int) -> None:
        """Handle the next events; returns after the timeout if there are none."""
        buffers = self._buffers
        count = buffers.call(self.library.wait, timeout_us)
        if not count:
            return
        words, data = buffers.content(count, int(buffers.words[0]))
        for event in Reader(words, data, 1).events(count, tensors):
            try:
                self._dispatch(event)
            except Exception:
                log.exception("an event of a backend in C could not be handled")

    def _dispatch(self, event: HostEvent) -> None:
        if event.kind == LOG:
            self._log(event)
        elif event.kind == METRIC:
            self._queries.change_metric(event.tag, event.flags, event.value)
        elif event.kind == QUERY:
            self._run_query(event)
        elif event.kind == CANCEL_CALL:
            self._calls.cancel(event.tag)
        else:
            handler = self._instances.get(event.owner)
            if handler is not None:
                handler.handle(event)

    def _log(self, event: HostEvent) -> None:
        model = self._models.get(event.owner)
        fields: dict[str, str | int] = {}
        if model is not None:
            fields = {"model": model.name, "version": model.version}
        file, _, message = event.text.partition("\n")
        write_record(
            LogRecordMessage(
                log.name, _LEVELS[event.tag], message, file, event.flags, fields=fields
            )
        )

    def _run_query(self, event: HostEvent) -> None:
        verb, _, arguments = event.text.partition("\n")
        answer = partial(self._answer, event.pointer)
        given = json.loads(arguments)
        if verb == "infer":
            query = partial(self._calls.start, event.owner, **given)
        else:
            query = partial(self._queries.run, event.owner, verb, given)
        if self._queries.may_wait(verb):
            threading.Thread(target=_answer, args=(verb, query, answer), daemon=True).start()
        else:
            _answer(verb, query, answer)

    def _answer(self, pointer: int, code: int, text: str) -> None:
        self.library.answer(pointer, code, text.encode())


def _answer(verb: str, query: Callable[[], str], answer: Callable[[int, str], None]) -> None:
    try:
        answer(-1, query())
    except TritonError as error:
        answer(error_number(error), error.message)
    except Exception as error:
        answer(1, internal_error(log, f"'{verb}' of a backend in C", error).message)


_starting = threading.Lock()
_hosts: list[BackendHost] = []


def host() -> BackendHost:
    """Return the host of this process. Raises `Unavailable` if the library is missing."""
    with _starting:
        if not _hosts:
            _hosts.append(BackendHost())
        return _hosts[0]
