"""The server's tracer: samples requests, applies settings, and sends ended traces to the sink."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial
from queue import Full, Queue

import msgspec
from msgspec import UNSET

from tritonpy.api.trace_sink import TraceChanges, Tracer, TraceSettings, TraceSink
from tritonpy.tracing.rule import TraceRule
from tritonpy_types.errors import InvalidArgument
from tritonpy_types.trace import Trace, TraceFamily, TraceLevel

_MAX_WAITING = 4096
_CLOSE_S = 30.0


Fields = dict[str, int]
NO_CHANGES = TraceChanges()


class _Layer:
    """The settings of one model or of the server, and the resulting rule."""

    def __init__(self, given: Fields, rule: TraceRule) -> None:
        self.given = given
        self.rule = rule


class TraceRules:
    """The rules of the server and of models. Not thread-safe."""

    def __init__(self, start: TraceRule) -> None:
        self._start = _fields(start)
        self._missing_setting = start.missing_setting
        self._server = _Layer({}, start)
        self._models: dict[str, _Layer] = {}

    def all(self) -> list[TraceRule]:
        """Return the current rules."""
        return [self._server.rule, *(layer.rule for layer in self._models.values())]

    def find(self, model: str) -> TraceRule:
        """Return the rule of a model, or of the server for ""."""
        return self._models.get(model, self._server).rule

    def change(self, model: str, changes: TraceChanges) -> None:
        """Set or clear settings of a model, or of the server and the models that inherit them.

        Raises InvalidArgument with Triton's text for settings that enable tracing but cannot trace.
        """
        self._change(model, changes)
        if not model:
            for name in list(self._models):
                self._change(name, NO_CHANGES)

    def _change(self, model: str, changes: TraceChanges) -> None:
        current = self._models.get(model) if model else self._server
        given = _changed({} if current is None else _with_remaining_count(current), changes)
        if model and not given:
            self._models.pop(model, None)
            return
        wider = _fields(self._server.rule) if model else self._start
        rule = self._rule(wider | given)
        if rule.level and rule.problem:
            raise InvalidArgument(f"Attempting to set invalid trace setting :{rule.problem}")
        if model:
            self._models[model] = _Layer(given, rule)
        else:
            self._server = _Layer(given, rule)

    def _rule(self, fields: Fields) -> TraceRule:
        return TraceRule(
            TraceLevel(fields["level"]),
            fields["rate"],
            fields["count"],
            fields["log_frequency"],
            self._missing_setting,
        )


def level_from_names(names: list[str]) -> TraceLevel:
    """Return the level that combines `names` of TraceLevel."""
    return TraceLevel(sum({TraceLevel[name] for name in names}))


def level_names(level: TraceLevel) -> list[str]:
    """Return the names of a level, none for OFF."""
    return [
        each.name
        for each in (TraceLevel.TIMESTAMPS, TraceLevel.TENSORS)
        if level & each and each.name
    ]


def _fields(rule: TraceRule) -> Fields:
    return {
        "level": rule.level,
        "rate": rule.rate,
        "count": rule.count,
        "log_frequency": rule.log_frequency,
    }


def _with_remaining_count(layer: _Layer) -> Fields:
    return (
        {**layer.given, "count": layer.rule.count} if "count" in layer.given else dict(layer.given)
    )


def _changed(given: Fields, changes: TraceChanges) -> Fields:
    for name, value in msgspec.structs.asdict(changes).items():
        if value is None:
            given.pop(name, None)
        elif value is not UNSET:
            given[name] = level_from_names(value) if name == "level" else value
    return given


class TraceThread:
    """Runs tasks in order in one thread, which starts with the first task.

    Tasks are lost if the queue is full.
    """

    def __init__(self, max_waiting: int = _MAX_WAITING) -> None:
        self._tasks: Queue[Callable[[], None] | None] = Queue(max_waiting)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False
        self._full = False

    def send(self, task: Callable[[], None]) -> None:
        """Queue `task` and return immediately. Exceptions of the task are logged."""
        if self._thread is None:
            self._start()
        try:
            self._tasks.put_nowait(task)
            self._full = False
        except Full:
            if not self._full:  # log once until the queue has space again
                self._full = True
                log.error("traces are lost: they arrive faster than they can be written")

    def close(self) -> bool:
        """Run the queued tasks, then end the thread.

        Returns False if it does not end within 30 s.
        """
        with self._starting:
            self._closed = True
            thread = self._thread
        if thread is None:
            return True
        try:
            self._tasks.put(None, timeout=_CLOSE_S)
        except Full:
            thread.join(0)
        else:
            thread.join(_CLOSE_S)
        if thread.is_alive():
            log.error("traces are lost: they could not be written in %.0f s", _CLOSE_S)
        return not thread.is_alive()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except Exception:
                log.exception("a trace is lost")


log = logging.getLogger("tritonpy.tracing")


class Tracing(Tracer):
    """The tracer of a server. It is thread-safe; `close` waits until all traces are written."""

    def __init__(self, sink: TraceSink, start: TraceSettings) -> None:
        self.headers = sink.headers
        self._sink = sink
        self._start = start
        self._supported_level = TraceLevel.TIMESTAMPS | (
            TraceLevel.TENSORS if sink.takes_tensors else TraceLevel.OFF
        )
        self._lock = threading.Lock()
        self._trace_thread = TraceThread()
        # called when `active` may have changed
        self.activity_changed: Callable[[], None] = lambda: None
        missing_setting = sink.missing()
        rule = TraceRule(
            level_from_names(start.level),
            start.rate,
            start.count,
            start.log_frequency,
            missing_setting,
        )
        self._rules = TraceRules(rule)
        if rule.level and missing_setting:
            log.warning("nothing is traced: %s", missing_setting)
        self._update_activity()
        self._warn_of_unsupported_levels()

    def sample(self, model_name: str, headers: Mapping[str, str]) -> Trace | None:
        caller = self._propagated(headers)
        with self._lock:
            rule = self._rules.find(model_name)
            if not rule.sample(continues=caller is not None):
                return None
        return TraceFamily(
            rule.level & self._supported_level, rule, caller, self._begun, self._ended
        ).trace()

    def settings(self, model_name: str = "") -> TraceSettings:
        """Return the settings of a model, or of the server."""
        with self._lock:
            rule = self._rules.find(model_name)
            return TraceSettings(
                level_names(rule.level), rule.rate, rule.count, rule.log_frequency,
                self._start.file, self._start.mode,
                dict(self._start.options),
            )  # fmt: skip

    def change(self, changes: TraceChanges, model_name: str = "") -> None:
        """Apply new settings to the following requests. Raises InvalidArgument."""
        with self._lock:
            before = self._rules.all()
            try:
                self._rules.change(model_name, changes)
            finally:  # an error for one model does not affect the others
                self._update_activity()
                self._warn_of_unsupported_levels()
                for rule in set(before).difference(self._rules.all()):
                    self._trace_thread.send(partial(self._replaced, rule))

    def close(self) -> None:
        """Stop tracing and write the remaining traces."""
        self.active = False
        if self._trace_thread.close():
            self._sink.close()

    def _update_activity(self) -> None:
        # with rate 0, clients' traces are still continued
        self.active = any(
            rule.level and (self._sink.headers or not rule.problem) and not rule.missing_setting
            for rule in self._rules.all()
        )
        self.activity_changed()

    def _warn_of_unsupported_levels(self) -> None:
        if any(rule.level & ~self._supported_level for rule in self._rules.all()):
            log.warning("the trace mode '%s' does not record tensors", self._start.mode)

    def _propagated(self, headers: Mapping[str, str]) -> object:
        if not headers:
            return None
        try:
            return self._sink.propagated(headers)
        except Exception:
            log.exception("the client's trace is not continued")
            return None

    def _begun(self, trace: Trace) -> None:
        try:
            self._sink.begun(trace)
        except Exception:
            log.exception("a trace is lost")

    def _ended(self, family: TraceFamily) -> None:
        self._trace_thread.send(partial(self._take, family))

    def _take(self, family: TraceFamily) -> None:
        rule: TraceRule = family.rule
        rule.taken += 1
        self._sink.take(family)
        if rule.replaced and rule.taken >= rule.chosen:
            self._sink.settled(rule)

    def _replaced(self, rule: TraceRule) -> None:
        rule.replaced = True
        if rule.taken >= rule.chosen:
            self._sink.settled(rule)
