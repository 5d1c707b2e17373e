"""Chooses the requests to trace, follows the settings, and hands ended traces to the sink."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial

from tritonpy.api.trace_settings import TraceChanges, TraceSettings
from tritonpy.api.trace_sink import TraceSink
from tritonpy.api.tracer import Tracer
from tritonpy.tracing.courier import Courier
from tritonpy.tracing.rule import TraceRule
from tritonpy.tracing.settings import TraceRules, level_of, names_of
from tritonpy.types.trace import Trace, TraceFamily, TraceLevel

log = logging.getLogger("tritonpy.tracing")


class Tracing(Tracer):
    """The tracer of a server. Any thread may call any method; `close` waits until everything is written."""

    def __init__(self, sink: TraceSink, start: TraceSettings) -> None:
        self.headers = sink.headers
        self._sink = sink
        self._start = start
        self._noted = TraceLevel.TIMESTAMPS | (TraceLevel.TENSORS if sink.takes_tensors else TraceLevel.OFF)
        self._lock = threading.Lock()
        self._courier = Courier()
        self.activity_changed: Callable[[], None] = lambda: None  # called where `active` may have become another
        lack = sink.missing()
        rule = TraceRule(level_of(start.level), start.rate, start.count, start.log_frequency, lack)
        self._rules = TraceRules(rule)
        if rule.level and lack:
            log.warning("nothing is traced: %s", lack)
        self._note_activity()
        self._warn_of_what_is_not_noted()

    def sample(self, model_name: str, headers: Mapping[str, str]) -> Trace | None:
        caller = self._propagated(headers)
        with self._lock:
            rule = self._rules.find(model_name)
            if not rule.sample(continues=caller is not None):
                return None
        return TraceFamily(rule.level & self._noted, rule, caller, self._begun, self._ended).trace()

    def settings(self, model_name: str = "") -> TraceSettings:
        """Return what applies to a model, or to the server."""
        with self._lock:
            rule = self._rules.find(model_name)
            return TraceSettings(
                names_of(rule.level), rule.rate, rule.count, rule.log_frequency, self._start.file, self._start.mode,
                dict(self._start.options),
            )  # fmt: skip

    def change(self, changes: TraceChanges, model_name: str = "") -> None:
        """Follow new settings from the next request on. Raises InvalidArgument."""
        with self._lock:
            before = self._rules.all()
            try:
                self._rules.change(model_name, changes)
            finally:  # what was refused for one model holds for the others
                self._note_activity()
                self._warn_of_what_is_not_noted()
                for rule in set(before).difference(self._rules.all()):
                    self._courier.send(partial(self._replaced, rule))

    def close(self) -> None:
        """Trace nothing further, write what there is."""
        self.active = False
        if self._courier.close():
            self._sink.close()

    def _note_activity(self) -> None:
        # a client's own trace counts even where the rate is 0
        self.active = any(
            rule.level and (self._sink.headers or not rule.problem) and not rule.lack for rule in self._rules.all()
        )
        self.activity_changed()

    def _warn_of_what_is_not_noted(self) -> None:
        if any(rule.level & ~self._noted for rule in self._rules.all()):
            log.warning("the trace mode '%s' notes no tensors", self._start.mode)

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
        self._courier.send(partial(self._take, family))

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
